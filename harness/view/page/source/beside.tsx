// Two episodes side by side, step by step.
import { useMemo, useState } from "preact/hooks";
import { getEpisode, isTurn, pictureAt, type Call, type Episode, type Said, type Shown, type Turn } from "./data";
import { allPictures } from "./episode";
import * as as from "./format";
import { useKeys } from "./keys";
import { Loading, useLoaded } from "./loading";
import { Badge } from "./parts";
import { Gallery } from "./pictures";
import { go, link } from "./route";
import { CallView, SaidView, TurnBody, TurnHead, type Place } from "./timeline";
import { Used, Verdict } from "./verdict";

/** What one row of the page holds of an episode: a message, or a step with the turn that made it. */
interface Part {
  said?: Said;
  turn?: Turn;
  /** Of a turn with several calls only the first has its words. */
  begins?: boolean;
  call?: Call;
}

function partsOf(of: Episode): Part[] {
  return of.parts.flatMap((part): Part[] => {
    if (!isTurn(part)) return [{ said: part }];
    const [first, ...rest] = part.calls;
    const head: Part = { turn: part, begins: true, ...(first ? { call: first } : {}) };
    return [head, ...rest.map((call): Part => ({ turn: part, call }))];
  });
}

const said = (part: Part | undefined) =>
  part?.said ? part.said.text.text : JSON.stringify([part?.call?.tool, part?.call?.arguments.map((one) => [one.name, one.value.text])]);

interface Named {
  run: string;
  id: string;
}

export function BesidePage({ first, second }: { first: Named; second: Named }) {
  const both = useLoaded(() => Promise.all([getEpisode(first.run, first.id), getEpisode(second.run, second.id)]), [first.run, first.id, second.run, second.id]);
  useKeys([
    { keys: ["s"], what: "exchange the two", does: () => go(link(["beside", second.run, second.id, first.run, first.id])) },
    { keys: ["u", "Escape"], what: "back to the first one's list", does: () => go(link(["run", first.run])) },
  ]);
  return (
    <main class="beside">
      <Loading of={both} what="reading both episodes">
        {([one, two]) => <BesideView of={[one, two]} names={[first, second]} />}
      </Loading>
    </main>
  );
}

function BesideView({ of, names }: { of: [Episode, Episode]; names: [Named, Named] }) {
  const [one, two] = useMemo(() => [partsOf(of[0]), partsOf(of[1])], [of]);
  const [open, setOpen] = useState<{ side: 0 | 1; picture: Shown } | null>(null);
  const rows = Math.max(one.length, two.length);
  const apart = Array.from({ length: rows }, (_, at) => at).find((at) => said(one[at]) !== said(two[at]));
  const [at, setAt] = useState(-1);
  const show = (row: number) => {
    const next = Math.max(0, Math.min(rows - 1, row));
    setAt(next);
    document.getElementById(`row-${next}`)?.scrollIntoView({ block: "start" });
  };
  useKeys([
    { keys: ["j", "ArrowRight"], what: "next step of both", does: () => show(at + 1) },
    { keys: ["k", "ArrowLeft"], what: "step before", does: () => show(at - 1) },
    { keys: ["d"], what: "where they part", does: () => apart !== undefined && show(apart) },
  ]);
  const sides = [0, 1] as const;
  const address = (side: 0 | 1) => (shown: Shown) => pictureAt(names[side].run, names[side].id, shown);
  const place = sides.map((side): Place => ({ address: address(side), enlarge: (picture) => setOpen({ side, picture }) })) as [Place, Place];
  const other = of[0].env !== of[1].env || of[0].level !== of[1].level || of[0].seed !== of[1].seed || of[0].digest !== of[1].digest;
  return (
    <>
      <h1>Two episodes</h1>
      {other ? <p class="note">They are of different instances.</p> : null}
      <p class="small">
        {apart === undefined ? "They say and do the same." : <button onClick={() => show(apart)}>They part at row {apart + 1} (d)</button>}
      </p>
      <div class="two heads">
        {sides.map((side) => (
          <section aria-label={`Episode ${side + 1}`}>
            <h2>
              <a href={link(["episode", names[side].run, names[side].id])}>{names[side].run}</a> <Badge of={of[side]} />
            </h2>
            <p class="policy-line">
              {of[side].env} · level {of[side].level} · seed {of[side].seed}
              {String(of[side].sample) === "0" ? "" : ` · sample ${of[side].sample}`}
            </p>
            <Verdict of={of[side]} />
            <Used of={of[side]} />
          </section>
        ))}
      </div>
      {Array.from({ length: rows }, (_, row) => (
        <div class={`two row${row === at ? " at" : ""}${row === apart ? " apart" : ""}`} id={`row-${row}`}>
          {sides.map((side) => (
            <PartView of={(side ? two : one)[row]} place={place[side]} first={row === 0} />
          ))}
        </div>
      ))}
      {open ? <Gallery pictures={allPictures(of[open.side])} first={open.picture.number} address={address(open.side)} onClose={() => setOpen(null)} /> : null}
    </>
  );
}

function PartView({ of, place, first }: { of: Part | undefined; place: Place; first: boolean }) {
  if (!of) return <div class="nothing">ended before</div>;
  if (of.said) return <SaidView of={of.said} place={place} brief={first} />;
  if (!of.turn) return null;
  return (
    <article class="turn" aria-label={`Turn ${of.turn.number}`}>
      {of.begins ? (
        <>
          <TurnHead of={of.turn} longest={0} />
          <TurnBody of={of.turn} />
        </>
      ) : (
        <p class="small">turn {as.count(of.turn.number)} goes on</p>
      )}
      {of.call ? <CallView of={of.call} place={place} /> : null}
    </article>
  );
}
