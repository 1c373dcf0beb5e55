"""Filler of filings: sentences of risk factors, business sections, accounting policies, clauses and market reports.

None of them states a fact of an issuer's ledger: their numbers are of other things, and no pattern says that one of
them is the issuer's. They are patterns for `prose.Prose`, with slots for the currency (`<cur>`), for years (`<year>`,
`<before>`, `<until>`, `<later>`). In the source a blank line ends a pattern.
"""

from __future__ import annotations

from collections.abc import Mapping


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(" ".join(part.split()) for part in text.split("\n\n"))


_RISK_TITLES = """
Prices of {energy|freight|raw materials|components|steel|packaging} may rise faster than ours

{Customs rules|Export controls|Sanctions|Product rules} may {change|tighten} in countries we serve

Our {data systems|control software|order systems|networks} may fail or be attacked

{Strikes|Epidemics|Storms|Floods|Fires} may {stop|slow} our production

{Currencies|Interest rates|Energy markets} may move against us

We may be held liable for {products|environmental damage|breaches of data rules|acts of distributors}

Our {insurance|compliance system|internal control|risk management} may not cover what happens

{Competitors|New entrants|Importers|Former partners} may take business from us

We may not {win tenders|renew permits|protect our know-how|train enough technicians} in time

{Tax|Labour|Environmental|Competition} authorities may take another view than we do
"""

_RISK = """
{Changes in|Delays to|Shifts in} {customs rules|technical standards|building codes|export controls} {may|could} {delay
deliveries|raise the cost of approval|make stocks obsolete|force us to redesign products}.

We {buy|source} {energy|freight|components|castings|control units} on markets where prices {have moved|may move} by
{#11..48}% within {a quarter|half a year|a year}.

{Customers|Distributors|Agents} in {some|several|a number of} countries pay {later than agreed|only after acceptance
tests|through local banks}, and terms of {#60..150} days are {common|not unusual} there.

{A court|An authority|A regulator} {may|might} see {a contract|a permit|a transfer price} {otherwise than we do|as
void|as in need of approval}, and {appeals|proceedings} {can take|take} {#2..7} years.

{Insurers|Our insurers} {exclude|limit} cover for {cyber attacks|wear and tear|penalties|pollution}, and may {raise
premiums|end policies} at {#30..90} days' notice.

{Price clauses|Hedges|Framework orders} protect us {in part|for some months|against some of these moves} only.

{Should|If} {any of these risks|such an event|several of them} {occur|come together}, {our business|results and cash
flows|our standing with customers} {would|could} suffer.

{One unit|A team|One site} {reviews|tests|updates} {its plans|its stocks|back-up systems} every {#3..12} months, which
{may not be enough|gives no certainty|does not remove the risk}.

In {an earlier case|one case|a case some years ago} {a competitor|an unrelated company|another supplier} had to
{recall|rework|scrap} {#200..900} {units|lots|deliveries}.

{Technicians|Welders|Software engineers|Buyers} are {hard to find|in short supply} {at some sites|in several
regions|near our larger sites}, and training takes {#6..30} months.

{The markets we serve|Our customers' industries} are cyclical, and {downturns|slumps} of {#8..35}% {have been
seen|occurred} in {some of them|earlier cycles}.

{A competitor|An importer|A peer} {with|that had} {turnover|net sales|revenue} of <cur> {#41..980}.{#0..9} million in
{<year>|<before>} {lost|gave up} {#3..29}% of it when {a licence|a supply agreement|a framework order} ended.

{A lender|A bank} called {a facility|a loan} of <cur> {#20..240}.{#0..9} million of {a peer|an unrelated company}
after net debt had {passed|reached} {#3..5}.{#0..9} times adjusted EBITDA.

{A claim|A suit} for <cur> {#2..60}.{#0..9} million that {a customer|an insurer} filed against {a peer|a competitor}
on {#1..28} {March|June|September|November} <before> was {settled|dismissed}.

{A peer|Another maker} wrote off goodwill of <cur> {#4..120}.{#0..9} million, {#6..58}.{#0..9}% of its equity.

{Permits|Licences|Approvals} must be renewed every {#2..10} years, and {conditions|fees} may {change|rise}.

{We cannot exclude|It cannot be ruled out} that {former employees|distributors|visitors} {disclosed|copied|used}
{drawings|formulas|price lists} without our knowledge.

{A breakdown|An outage} of {#2..9} days at {one of our sites|a data centre} would {delay|endanger} {some|many}
deliveries.
"""

_BUSINESS_TITLES = """
{Quality|Environmental|Energy|Safety} management

{Purchasing|Logistics|Service|Sales} organisation

{Information systems|Data protection|Insurance|Compliance}

{Training|Apprentices|Pay and benefits|Works councils}

{Competition|Seasonality|Regulation|Certificates} in our markets

{History|Milestones|Brands|Trade fairs}
"""

_BUSINESS = """
{One site|One unit|A team} is {audited|reviewed} once {a year|in two years} by {an outside body|colleagues of another
site}.

{Orders|Calls|Complaints} of one {segment|region|product line} are {answered|confirmed} within {#4..72} hours in
{most|nearly all} cases.

{A service team|One field engineer} carries {spare parts|tools|manuals} for {#20..90} product families.

{At one site|In one region} {apprentices|trainees} learn {#2..4} years in {#3..14} trades, and most of them stay.

One buyer rates {suppliers|carriers} by {quality|punctuality|price} on a scale to {#5..100}; those below {#2..4} {are
replaced|get a plan}.

{One|Another} early {workshop|hall|catalogue} {dates from|goes back to} {@1898..1974}, when {#4..60} people {worked
for|were employed by} the founder.

{Products|Deliveries} of one {site|line} are {tested|inspected} at {#2..11} stages before they leave {the site|the
hall}.

{A fair|A house fair|An open day} drew {#150..4200} visitors from {#5..38} countries in a recent year.

{A handbook|A manual|A catalogue} of {one unit|one segment|one site} is kept in {#6..24} languages.

{At one site|In one store} {spare parts|tools|samples} are counted by hand {#2..12} times a year.

{A rival|A smaller maker|A former customer} {reported|announced} {turnover|net sales|revenue} of <cur>
{#31..940}.{#0..9} million and {#210..9800} employees for {<year>|<before>}.

{A distributor|An agent|A supplier} in {#2..19} countries serves {#120..6400} active customers of its own and holds
{#12..390} patents.

{A rival|Another maker} runs {#3..19} sites, {two|three|four|five} of them leased, at {#58..96}.{#0..9}% of capacity.

{A trade body|A survey} puts the market share of {the leader|the runner-up} at {#9..31}.{#0..9}%, and its order
backlog at <cur> {#90..720}.{#0..9} million.

{At one site|In one unit} {energy use|water use|waste} is to fall by {#5..40}% within {#3..12} years.

{Brands|Designs} of one {segment|product line} are registered in {#9..70} countries and renewed every {#5..10} years.
"""

_POLICY_TITLES = """
Accounting policy: {leases|revenue recognition|foreign currencies|hedges|grants|inventories}

Accounting policy: {impairment|provisions|share-based payment|income taxes|development costs}

Financial risk: {credit|liquidity|interest|currency|price} risk

Estimates and judgements: {useful lives|discount rates|stages of completion|customer bonuses}
"""

_POLICY = """
{Assets|Liabilities|Contracts} {are measured|are recognised|are tested} {at cost|at fair value|when control passes|at
the end of each period}.

{One company|Another company} writes off {software|tools|vehicles} over {#3..12} years and {buildings|halls} over
{#15..45} years.

{At one company|In one country} a {rise|fall} of {#25..200} basis points {would change|changes} {the value of
swaps|discounted amounts} by less than the amount that the board regards as material.

{Discount rates|Growth rates|Loss rates} of {one plan|one unit|one company} are taken from {market data|a
service|observed defaults} of the {#10..60} {months|quarters} before.

{Gains|Losses|Differences} {go to|are taken to} {other comprehensive income|the income statement|equity}.

{One company|Another company} {does not apply|applies} {hedge accounting|the exemption|the practical expedient} to
{leases of short term|small values|forward contracts}.

{One company's|Another company's} {receivables|claims} of more than {#60..180} days past due are {written
down|reviewed one by one}.

{Trainees|Agency staff} of one {company|site}, {#21..190} on average over {<year>|<before>}, are not in head counts.

{Held by joint ventures|Pledged to landlords}: deposits of <cur> {#110..4900} thousand ({#110..4900} thousand).

{Advances to|Loans to} {suppliers|employees} of <cur> {#210..9400} thousand are shown under other receivables.

{One grant|A subsidy} is {deducted|deferred} and released over {#4..20} years.

{One company|The finance department of one company} {reviews|revisits} {its estimates|the method} every {#3..12}
months.

{Standards|Amendments} that apply later are {not expected to matter|still being studied}.
"""

_CLAUSE_TITLES = """
Form of {framework|distribution|service|confidentiality|lease|agency} agreement no. {#11..990}

General terms of {purchase|delivery|service|licensing}, edition {#2..40}

Standard {warranty|liability|insurance|audit|termination} schedule {#2..80}
"""

_CLAUSES = """
({#1..40}.{#1..9}) {The seller|The buyer|Either party|The lessee} shall {notify|indemnify|reimburse} {the other|the
lessor|the carrier} within {#5..60} days of {becoming aware|delivery|the invoice}.

({#1..40}.{#1..9}) Liability under {this clause|this schedule} is limited to {#50..900} thousand units of the currency
of the invoice {for each event|a year}.

({#1..40}.{#1..9}) {This agreement|The order} may be terminated {in writing|for cause|for convenience} on {#10..180}
days' notice.

({#1..40}.{#1..9}) The annual {rent|fee|minimum} is <cur> {#110..8900} thousand until {#1..28}
{January|April|July|October} {<until>|<later>}.

({#1..40}.{#1..9}) {A royalty|A commission|A rebate} of {#1..9}.{#0..9}% is due on {sales|purchases} above <cur>
{#2..80}.{#0..9} million.

({#1..40}.{#1..9}) {Overdue sums|Overdue amounts} {bear|carry} interest of {#1..12}.{#10..95}% a year.

({#1..40}.{#1..9}) {Goods|Samples|Drawings} remain the property of {the seller|the owner} until {payment|return}.

({#1..40}.{#1..9}) {Records|Test reports} are kept for {#2..15} years and shown on {request|reasonable notice}.

({#1..40}.{#1..9}) {Damages|Penalties} for delay are {#1..9} per mille a week, at most {#3..15}%.

({#1..40}.{#1..9}) {Disputes|Claims} are {settled|heard} by {two|three|five} {arbitrators|judges} at {the seat of the
defendant|a neutral place}.

({#1..40}.{#1..9}) {Neither party|No party} may {assign|pledge} {its rights|claims} without consent, which is deemed
given after {#10..45} days.

({#1..40}.{#1..9}) {Changes|Additions} to {this document|an annex} must be {in writing|signed by both parties}.
"""

_MARKET = """
{Demand|Production|Trade} in this market {grew|changed|rose} by {#1..9}.{#0..9}% a year over the {#4..10} years
before, {as surveys|as customs data|as trade bodies} show.

{The five largest|The ten largest} suppliers {hold|have} {#31..78}% of it, {up from|after} {#25..60}% a decade ago.

{Replacement|Refit|First fit} is {#22..71}% of demand, and {prices|lead times} {rose|fell} by {#2..19}%.

{Buyers|Users} {change suppliers|tender anew} every {#3..11} years, and {#12..66}% of them buy service as well.

{Forecasts|Estimates} of growth lie between {#1..3}.{#0..9}% and {#4..8}.{#0..9}% a year.

{Imports|New entrants} have {#3..24}% of {sales|volumes}, most of it in {simple|standard} products.
"""

LIBRARY: Mapping[str, tuple[str, ...]] = {
    "risk title": _patterns(_RISK_TITLES),
    "risk": _patterns(_RISK),
    "business title": _patterns(_BUSINESS_TITLES),
    "business": _patterns(_BUSINESS),
    "policy title": _patterns(_POLICY_TITLES),
    "policy": _patterns(_POLICY),
    "clause title": _patterns(_CLAUSE_TITLES),
    "clause": _patterns(_CLAUSES),
    "market": _patterns(_MARKET),
}
"""Topic → patterns."""
