// An episode: its verdict, and what happened.
import { useEffect, useMemo, useState } from "preact/hooks";
import { getEpisode, getTable, isTurn, pictureAt, type Episode, type Run, type Shown, type Turn } from "./data";
import { shown, type Query } from "./filter";
import * as as from "./format";
import { useKeys } from "./keys";
import { Loading, useLoaded } from "./loading";
import { isMarked, toggle, useMarks } from "./marks";
import { Badge, Copy } from "./parts";
import { Gallery } from "./pictures";
import { become, go, link } from "./route";
import { SaidView, secondsOf, TurnView, type Place } from "./timeline";
import { Used, Verdict } from "./verdict";

const plain = ({ turn: _turn, ...rest }: Query): Query => rest;

export function EpisodePage({ run, id, query }: { run: Run; id: string; query: Query }) {
  const episode = useLoaded(() => getEpisode(run.name, id), [run.name, id]);
  const table = useLoaded(() => getTable(run), [run.name, run.version]);
  const list = useMemo(() => (table.value ? shown(table.value.rows, plain(query)) : []), [table.value, JSON.stringify(plain(query))]);
  const at = list.findIndex((row) => row.id === id);
  const to = (by: number) => {
    const row = at < 0 ? undefined : list[at + by];
    return row ? link(["episode", run.name, row.id], plain(query)) : "";
  };
  const follow = (by: number) => () => {
    const hash = to(by);
    if (hash) go(hash);
  };
  const back = link(["run", run.name], plain(query));
  useKeys([
    { keys: ["n"], what: "next episode of the list", does: follow(1) },
    { keys: ["p"], what: "episode before it", does: follow(-1) },
    { keys: ["u", "Escape"], what: "back to the list", does: () => go(back) },
  ]);
  const current = episode.value?.id === id ? episode : { busy: true, ...(episode.busy ? {} : episode.error ? { error: episode.error } : {}) };
  return (
    <main class="episode">
      <nav class="crumbs" aria-label="Where this is">
        <a href={back}>{run.name}</a>
        <span class="pager">
          {at >= 0 ? (
            <>
              {as.count(at + 1)} of {as.count(list.length)}
            </>
          ) : null}
          <Step to={to(-1)} title="Episode before (p)" text="← p" />
          <Step to={to(1)} title="Next episode (n)" text="n →" />
        </span>
      </nav>
      <Loading of={current} what="reading the episode">
        {(found) => <EpisodeView key={found.id} run={run} of={found} query={query} />}
      </Loading>
    </main>
  );
}

const Step = ({ to, title, text }: { to: string; title: string; text: string }) =>
  to ? (
    <a href={to} title={title}>
      {text}
    </a>
  ) : (
    <span class="none" aria-disabled="true">
      {text}
    </span>
  );

export const allPictures = (of: Episode): Shown[] =>
  of.parts.flatMap((part) => (isTurn(part) ? part.calls.flatMap((call) => call.observation?.pictures ?? []) : part.pictures)).filter((one) => !one.problem);

function EpisodeView({ run, of, query }: { run: Run; of: Episode; query: Query }) {
  useMarks();
  const turns = of.parts.filter(isTurn);
  const asked = Number(query["turn"] ?? 0);
  const [open, setOpen] = useState<Shown | null>(null);
  const address = (one: Shown) => pictureAt(run.name, of.id, one);
  const place: Place = { address, enlarge: setOpen };
  const pictures = useMemo(() => allPictures(of), [of]);
  const longest = Math.max(0, ...turns.map(secondsOf));
  const mark = { run: run.name, id: of.id, label: `${run.name}: ${of.env} level ${of.level} seed ${of.seed}` };
  const show = (number: number) => {
    become(link(["episode", run.name, of.id], { ...query, turn: number > 0 ? String(number) : "" }));
    if (number <= 0) scrollTo(0, 0);
  };
  useEffect(() => {
    if (asked > 0) document.getElementById(`turn-${asked}`)?.scrollIntoView({ block: "start" });
    else scrollTo(0, 0);
  }, [asked]);
  useKeys([
    { keys: ["j", "ArrowRight"], what: "next turn", does: () => show(Math.min(turns.length, asked + 1)) },
    { keys: ["k", "ArrowLeft"], what: "turn before", does: () => show(Math.max(0, asked - 1)) },
    { keys: ["G"], what: "last turn", does: () => show(turns.length) },
    { keys: ["g"], what: "to the top", does: () => show(0) },
    { keys: ["x"], what: "mark the episode, to compare two", does: () => toggle(mark) },
    { keys: ["i"], what: "its pictures", does: () => pictures[0] && setOpen(pictures[0]) },
  ]);
  return (
    <>
      <header class="title">
        <h1>
          {of.env} <Badge of={of} />
        </h1>
        <p class="policy-line">
          level {of.level} · seed {of.seed}
          {String(of.sample) === "0" ? "" : ` · sample ${of.sample}`}
          {of.options ? <> · <code>{of.options}</code></> : null} · image {of.image} · digest <code>{of.digest.slice(0, 12)}</code>
          <Copy text={`metier play ${of.env} --seed ${of.seed} --level ${of.level}`} label="the command that plays it" shown="copy as command" />
          <button class="quiet" aria-pressed={isMarked(mark)} onClick={() => toggle(mark)}>
            {isMarked(mark) ? "marked to compare" : "compare…"}
          </button>
        </p>
      </header>
      <div class="columns">
        <div class="aside">
          <Verdict of={of} />
          <Used of={of} />
          {turns.length > 1 ? <Strip turns={turns} at={asked} show={show} longest={longest} /> : null}
        </div>
        <div class="timeline">
          {pictures.length > 1 ? <Film pictures={pictures} of={of} place={place} /> : null}
          {of.parts.map((part, at) =>
            isTurn(part) ? (
              <TurnView of={part} at={part.number === asked} longest={longest} place={place} />
            ) : (
              <SaidView of={part} place={place} brief={at === 0} />
            ),
          )}
          {of.parts.length ? null : <p class="loading">Nothing was said.</p>}
        </div>
      </div>
      {open ? <Gallery pictures={pictures} first={open.number} address={address} onClose={() => setOpen(null)} /> : null}
    </>
  );
}

const mostInFilm = 60;

/** All pictures in a row, from the first look to the last render. */
function Film({ pictures, of, place }: { pictures: Shown[]; of: Episode; place: Place }) {
  const turnOf = new Map(of.parts.filter(isTurn).flatMap((turn) => turn.calls.flatMap((call) => (call.observation?.pictures ?? []).map((one) => [one.number, turn.number] as const))));
  return (
    <section class="card" aria-label="Pictures">
      <h2>
        {as.plural(pictures.length, "picture")} <small>from first to last</small>
      </h2>
      <div class="film" tabIndex={0}>
        {pictures.slice(0, mostInFilm).map((one) => (
          <button class="picture" onClick={() => place.enlarge(one)} aria-label={`Enlarge picture ${one.number + 1}`}>
            <img src={place.address(one)} loading="lazy" width={one.width} height={one.height} alt={`Picture ${one.number + 1}`} />
            <small>{turnOf.has(one.number) ? `turn ${turnOf.get(one.number)}` : "brief"}</small>
          </button>
        ))}
        {pictures.length > mostInFilm ? <p class="nothing">and {pictures.length - mostInFilm} more below</p> : null}
      </div>
    </section>
  );
}

/** Every turn as a bar: how much it said, or how long it took where that was measured. */
function Strip({ turns, at, show, longest }: { turns: Turn[]; at: number; show: (number: number) => void; longest: number }) {
  const size = (turn: Turn) => (longest > 0 ? secondsOf(turn) : turn.usage.output_tokens);
  const most = Math.max(0, ...turns.map(size));
  return (
    <section class="card strip" aria-label="Turns">
      <h2>
        Turns <small>{longest > 0 ? "by time" : most > 0 ? "by output tokens" : ""}</small>
      </h2>
      <div class="bars">
        {turns.map((turn) => {
          const bad = turn.calls.some((call) => call.ok === false || /^(exit code|ended by|stopped|killed)/.test(call.observation?.remark ?? ""));
          const what = `Turn ${turn.number}${longest > 0 ? `, ${as.seconds(secondsOf(turn))}` : ""}, ${as.plural(turn.usage.output_tokens, "token")}${bad ? ", with an error" : ""}`;
          return (
            <button class={`${turn.number === at ? "at" : ""}${bad ? " bad" : ""}`} title={what} aria-label={what} onClick={() => show(turn.number)}>
              <i style={{ height: `${most > 0 ? Math.max(8, (100 * size(turn)) / most) : 40}%` }} />
            </button>
          );
        })}
      </div>
    </section>
  );
}
