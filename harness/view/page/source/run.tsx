// A run: what it amounts to, and its episodes.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { getReport, getTable, type Report, type Row, type Run, type Summary, type Table } from "./data";
import { filters, shown, sortedBy, values, type Query } from "./filter";
import * as as from "./format";
import { useKeys } from "./keys";
import { Loading, useLoaded } from "./loading";
import { isMarked, toggle, useMarks } from "./marks";
import { Badge, Copy, Facts, Rate, Select } from "./parts";
import { become, go, link } from "./route";
import { Rows } from "./rows";

export function RunPage({ run, query }: { run: Run; query: Query }) {
  const table = useLoaded(() => getTable(run), [run.name, run.version]);
  const report = useLoaded(() => getReport(run), [run.name, run.version]);
  return (
    <main>
      <h1>{run.name}</h1>
      <p class="policy-line">
        {run.policy} {run.policy ? <Copy text={run.policy} label="the policy" /> : null}
      </p>
      <Loading of={report} what="counting">
        {(found) => <Figures report={found} run={run} query={query} />}
      </Loading>
      <Loading of={table} what="reading the rows">
        {(found) => <Episodes run={run} table={found} query={query} />}
      </Loading>
    </main>
  );
}

function Figures({ report, run, query }: { report: Report; run: Run; query: Query }) {
  const all = report.overall;
  const invalid = Object.entries(all.invalid);
  const [by, setBy] = useState<"domains" | "levels" | "environments">("domains");
  const [open, setOpen] = useState(report.domains.length > 1 || report.levels.length > 1);
  return (
    <section aria-label="Summary">
      <Facts
        of={[
          ["pass rate", <>{as.percent(all.pass_rate)} <small>{all.pass_rate == null ? "" : as.interval(all.pass_rate_low, all.pass_rate_high)}</small></>, report.intervals],
          ["passed", <>{as.count(all.passed)} <small>of {as.count(all.valid)} valid</small></>],
          ["requested", <>{as.count(all.requested)}{all.missing ? <small> {as.count(all.missing)} missing</small> : null}</>],
          ["invalid", <>{as.count(invalid.reduce((sum, [, number]) => sum + number, 0))}{invalid.length ? <small> {invalid.map(([name, number]) => `${number} ${as.words(name)}`).join(", ")}</small> : null}</>, "Failures of ours; they are in no rate"],
          ["mean reward", <>{as.reward(all.reward.value)}</>],
          ...(report.samples > 1
            ? ([[`pass@${report.samples}`, as.percent(all.pass_at.at(-1)?.value)], [`pass^${report.samples}`, as.percent(all.pass_hat.at(-1)?.value)]] as [string, string][])
            : []),
          ["tokens", as.short(all.spent.prompt_tokens + all.spent.output_tokens), `${as.count(all.spent.prompt_tokens)} prompt, ${as.count(all.spent.output_tokens)} output`],
          ...(all.spent.cost_usd == null ? [] : ([["cost", as.usd(all.spent.cost_usd)]] as [string, string][])),
          ...(all.per_success ? ([["per success", `${as.seconds(all.per_success.seconds)}, ${as.short(all.per_success.tokens)} tokens`]] as [string, string][]) : []),
        ]}
      />
      <details class="by" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>By domain, level and environment</summary>
        <div class="tabs" role="group" aria-label="Groups">
          {(["domains", "levels", "environments"] as const).map((one) => (
            <button aria-pressed={one === by} onClick={() => setBy(one)}>
              {one}
            </button>
          ))}
        </div>
        <Groups rows={report[by]} by={by} run={run} query={query} />
      </details>
      <details class="made">
        <summary>How it was made</summary>
        <Facts
          of={[
            ["sandboxes", run.conditions?.backend],
            ["episode time", as.seconds(run.conditions?.episode_s)],
            ["hub secret", run.conditions?.secret_fingerprint],
            ["metier", run.conditions?.metier],
            ["plan", <code>{run.plan?.slice(0, 12)}</code>],
            ...(run.sessions ?? []).slice(-3).map((one): [string, string] => [`process of ${one.started_at}`, `${one.commit.slice(0, 12) || "no checkout"}, ${one.executor} × ${one.concurrency}, Python ${one.python}`]),
            ...(run.path ? ([["folder", run.path]] as [string, string][]) : []),
          ]}
        />
        <p class="small">
          {report.intervals}. {report.convention}. {report.rows_of_other_settings ? `${report.rows_of_other_settings} rows of other settings are in the folder and not counted.` : ""}
        </p>
      </details>
    </section>
  );
}

function Groups({ rows, by, run, query }: { rows: Summary[]; by: "domains" | "levels" | "environments"; run: Run; query: Query }) {
  const name = { domains: "domain", levels: "level", environments: "env" }[by];
  return (
    <div class="scroll">
      <table class="groups">
        <thead>
          <tr>
            <th>{name === "env" ? "environment" : name}</th>
            <th class="wide">pass rate</th>
            <th class="number">passed</th>
            <th class="number">invalid</th>
            <th class="number">missing</th>
            <th class="number">reward</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((one) => (
            <tr>
              <td>
                <a href={link(["run", run.name], { ...query, [name]: by === "levels" ? one.group.replace("level ", "") : one.group })}>{one.group}</a>
              </td>
              <td class="wide"><div>
                <Rate value={one.pass_rate} low={one.pass_rate_low} high={one.pass_rate_high} label={one.group} />
                <span class="figure">
                  {as.percent(one.pass_rate)} <small>{one.pass_rate == null ? "" : as.interval(one.pass_rate_low, one.pass_rate_high)}</small>
                </span>
              </div></td>
              <td class="number">
                {as.count(one.passed)} <small>of {as.count(one.valid)}</small>
              </td>
              <td class="number">{as.count(Object.values(one.invalid).reduce((sum, number) => sum + number, 0))}</td>
              <td class="number">{as.count(one.missing)}</td>
              <td class="number">{as.reward(one.reward.value)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const narrow = matchMedia("(max-width: 760px)");

function useNarrow(): boolean {
  const [is, set] = useState(narrow.matches);
  useEffect(() => {
    const changed = () => set(narrow.matches);
    narrow.addEventListener("change", changed);
    return () => narrow.removeEventListener("change", changed);
  }, []);
  return is;
}

const columns: [string, string, string][] = [
  ["env", "environment", ""],
  ["level", "level", "number"],
  ["seed", "seed", "number"],
  ["sample", "sample", "number"],
  ["outcome", "result", ""],
  ["reward", "reward", "number"],
  ["turns", "turns", "number"],
  ["tokens", "tokens", "number"],
  ["cost", "cost", "number"],
  ["time", "time", "number"],
];

/** Where each run's list was left, so that coming back from an episode finds it there. */
const left = new Map<string, number>();

function Episodes({ run, table, query }: { run: Run; table: Table; query: Query }) {
  useMarks();
  const small = useNarrow();
  const rows = useMemo(() => shown(table.rows, query), [table, JSON.stringify(query)]);
  const [at, choose] = useState(() => left.get(run.name) ?? -1);
  const here = Math.min(at, rows.length - 1);
  const setAt = (index: number) => {
    left.set(run.name, index);
    choose(index);
  };
  const search = useRef<HTMLInputElement>(null);
  const open = (row: Row | undefined) => row && go(link(["episode", run.name, row.id], query));
  const set = (name: string, value: string) => become(link(["run", run.name], { ...query, [name]: value }));
  const mark = (row: Row) => ({ run: run.name, id: row.id, label: `${run.name}: ${row.env} level ${row.level} seed ${row.seed}` });
  const chosen = rows[here];
  const move = (by: number) => () => setAt(Math.max(0, Math.min(rows.length - 1, here + by)));
  useKeys([
    { keys: ["j", "ArrowDown"], what: "next episode of the list", does: move(1) },
    { keys: ["k", "ArrowUp"], what: "episode before", does: move(-1) },
    { keys: ["G"], what: "last of the list", does: () => setAt(rows.length - 1) },
    { keys: ["g"], what: "first of the list", does: () => setAt(0) },
    { keys: ["Enter", "o"], what: "open it", does: () => open(chosen) },
    { keys: ["x"], what: "mark it, to compare two", does: () => chosen && toggle(mark(chosen)) },
    { keys: ["/"], what: "search", does: () => search.current?.focus() },
    { keys: ["Escape", "u"], what: "no filters, then back to the runs", does: () => go(filters.some((one) => query[one]) ? link(["run", run.name], query["sort"] ? { sort: query["sort"] } : {}) : "#/runs") },
  ]);
  const all = table.rows;
  const samples = all.some((row) => String(row.sample) !== "0");
  const costs = all.some((row) => row.cost_usd != null);
  const there = columns.filter(([name]) => (name !== "sample" || samples) && (name !== "cost" || costs));
  const choices = useMemo(
    () => ({
      domain: values(all, (row) => [as.domain(row.env)]),
      env: values(all, (row) => [row.env]),
      level: values(all, (row) => [row.level]),
      outcome: values(all, (row) => [row.outcome]),
      limit: values(all, (row) => [row.limit]),
      check: values(all, (row) => row.missed),
    }),
    [table],
  );
  const template = there.map(([name]) => ({ env: "minmax(14rem, 2fr)", outcome: "minmax(9rem, 1.2fr)" })[name] ?? "minmax(4rem, 0.6fr)").join(" ");
  const style = small ? {} : { gridTemplateColumns: `2.2rem ${template} minmax(8rem, 2fr)` };
  const cell: Record<string, (row: Row) => preact.ComponentChildren> = {
    env: (row) => (
      <a href={link(["episode", run.name, row.id], query)} title={row.options ? `${row.env} ${row.options}` : row.env} tabIndex={-1}>
        {row.env}
      </a>
    ),
    level: (row) => row.level,
    seed: (row) => row.seed,
    sample: (row) => row.sample,
    outcome: (row) => <Badge of={row} />,
    reward: (row) => as.reward(row.reward),
    turns: (row) => as.count(row.turns),
    tokens: (row) => as.short(row.prompt_tokens + row.output_tokens),
    cost: (row) => as.usd(row.cost_usd),
    time: (row) => as.seconds(row.total_s),
  };
  return (
    <section aria-label="Episodes">
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <label class="field search">
          <span>search</span>
          <input ref={search} type="search" placeholder="environment, seed, check, failure…" value={query["q"] ?? ""} onInput={(event) => set("q", event.currentTarget.value)} />
        </label>
        {choices.domain.length > 1 ? <Select label="domain" value={query["domain"] ?? ""} values={choices.domain} onChange={(value) => set("domain", value)} /> : null}
        <Select label="environment" value={query["env"] ?? ""} values={choices.env} onChange={(value) => set("env", value)} />
        <Select label="level" value={query["level"] ?? ""} values={choices.level} onChange={(value) => set("level", value)} />
        <Select label="passed" value={query["passed"] ?? ""} values={[["yes", "passed"], ["no", "failed"], ["invalid", "invalid"]]} onChange={(value) => set("passed", value)} />
        <Select label="outcome" value={query["outcome"] ?? ""} values={choices.outcome} onChange={(value) => set("outcome", value)} />
        {choices.limit.length || query["limit"] ? <Select label="limit" value={query["limit"] ?? ""} values={choices.limit} onChange={(value) => set("limit", value)} /> : null}
        {choices.check.length || query["check"] ? <Select label="missed check" value={query["check"] ?? ""} values={choices.check} onChange={(value) => set("check", value)} /> : null}
      </form>
      <p class="small" role="status">
        {rows.length === all.length ? as.plural(all.length, "episode") : `${as.count(rows.length)} of ${as.plural(all.length, "episode")}`}
        {table.missing ? `, ${as.count(table.missing)} more were not run yet` : ""}
        {table.other ? `; ${as.count(table.other)} rows of other settings are not shown` : ""}
        {filters.some((one) => query[one]) ? (
          <>
            {" · "}
            <a href={link(["run", run.name], query["sort"] ? { sort: query["sort"] } : {})}>all of them</a>
          </>
        ) : null}
      </p>
      <div class="grid" role="table" aria-label="Episodes" aria-rowcount={rows.length + 1}>
        <div class="line head" role="row" aria-rowindex={1} style={style}>
          <span role="columnheader">
            <span class="unseen">Compare</span>
          </span>
          {there.map(([name, title, kind]) => {
            const sort = query["sort"] ?? "";
            const way = sort === name ? "ascending" : sort === `-${name}` ? "descending" : "none";
            return (
              <span role="columnheader" class={`${kind} c-${name}`} aria-sort={way}>
                <button class="quiet" onClick={() => become(link(["run", run.name], sortedBy(query, name)))}>
                  {title}
                  <span aria-hidden="true">{way === "ascending" ? " ↑" : way === "descending" ? " ↓" : ""}</span>
                </button>
              </span>
            );
          })}
          <span role="columnheader" class="c-missed">
            missed checks, failures
          </span>
        </div>
        <Rows count={rows.length} height={small ? 62 : 34} at={here}>
          {(index) => {
            const row = rows[index];
            if (!row) return null;
            return (
              <div
                key={row.id}
                class={`line${index === here ? " at" : ""}`}
                role="row"
                aria-rowindex={index + 2}
                aria-current={index === here}
                style={style}
                onClick={(event) => {
                  if (event.defaultPrevented || (event.target as HTMLElement).closest("a,input")) return;
                  setAt(index);
                  open(row);
                }}
              >
                <span role="cell" class="tick">
                  <input type="checkbox" tabIndex={-1} aria-label={`Compare ${row.env} level ${row.level} seed ${row.seed}`} checked={isMarked(mark(row))} onChange={() => toggle(mark(row))} />
                </span>
                {there.map(([name, , kind]) => (
                  <span role="cell" class={`${kind} c-${name}`}>
                    {cell[name]?.(row)}
                  </span>
                ))}
                <span role="cell" class="c-missed" title={row.failure || row.missed.join(", ")}>
                  {row.failure || row.missed.join(", ")}
                </span>
              </div>
            );
          }}
        </Rows>
        {rows.length ? null : <p class="loading">{all.length ? "No episode is like that." : "No trial has ended yet."}</p>}
      </div>
    </section>
  );
}
