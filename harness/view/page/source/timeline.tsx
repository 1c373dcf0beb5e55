// What was said, called and seen, turn by turn.
import { useState } from "preact/hooks";
import type { Call, Observation, Said, Shown, Text, Turn } from "./data";
import * as as from "./format";

/** Shows a picture large; `null` where pictures cannot be had. */
export type Enlarge = (picture: Shown) => void;
export interface Place {
  address: (one: Shown) => string;
  enlarge: Enlarge;
}

const mostLines = 26;
const mostCharacters = 5000;

/** A text of which a long one begins folded. */
export function Words({ of, kind, cut }: { of: Text; kind: string; cut?: number }) {
  const [open, setOpen] = useState(false);
  if (!of.text && !of.left_out) return null;
  const lines = of.text.split("\n");
  const long = lines.length > mostLines || of.text.length > mostCharacters;
  const text = long && !open ? lines.slice(0, mostLines).join("\n").slice(0, mostCharacters) : of.text;
  return (
    <div class={`words ${kind}${long && !open ? " folded" : ""}`}>
      <pre tabIndex={0}>{cut ? marked(text) : kind === "prose" ? withCode(text) : text}</pre>
      {long ? (
        <button class="more" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Show less" : `Show all ${lines.length > 1 ? as.plural(lines.length, "line") : as.plural(of.text.length, "character")}`}
        </button>
      ) : null}
      {of.left_out ? <p class="cut">{as.plural(of.left_out, "more character")} are in the results folder, and not on this page</p> : null}
    </div>
  );
}

/** Of prose, what stands in backquotes, as briefs and models write it. */
const withCode = (text: string) => text.split(/`([^`\n]+)`/).map((part, at) => (at % 2 ? <code>{part}</code> : part));

const cutHere = /^(\[\d+ bytes cut here[^\n]*\])$/m;

function marked(text: string) {
  const [before, mark, ...after] = text.split(cutHere);
  if (mark === undefined) return text;
  return (
    <>
      {before}
      <mark>{mark}</mark>
      {after.join("")}
    </>
  );
}

export function Pictures({ of, place }: { of: Shown[]; place: Place }) {
  if (!of.length) return null;
  return (
    <div class="pictures">
      {of.map((one) =>
        one.problem ? (
          <p class="cut">a picture that is not shown: {one.problem}</p>
        ) : (
          <button class="picture" onClick={() => place.enlarge(one)} aria-label={`Enlarge picture ${one.number + 1}`}>
            <img src={place.address(one)} loading="lazy" width={one.width} height={one.height} alt={`Picture ${one.number + 1}, ${one.width} by ${one.height} pixels`} />
            <small>
              {one.number + 1} · {one.width} × {one.height}
            </small>
          </button>
        ),
      )}
    </div>
  );
}

function Arguments({ of }: { of: Call["arguments"] }) {
  const block = (one: Call["arguments"][number]) => one.is_text && (one.value.text.includes("\n") || one.value.text.length > 60);
  const inline = of.filter((one) => !block(one));
  return (
    <>
      {inline.length ? (
        <dl class="arguments">
          {inline.map((one) => (
            <div>
              <dt>{one.name}</dt>
              <dd>
                <code>{one.value.text}</code>
                {one.value.left_out ? "…" : ""}
              </dd>
            </div>
          ))}
        </dl>
      ) : null}
      {of.filter(block).map((one) => (
        <>
          {of.length > 1 ? <p class="argument">{one.name}</p> : null}
          <Words of={one.value} kind="code" />
        </>
      ))}
    </>
  );
}

function Seen({ of, ok, place }: { of: Observation; ok: boolean | null; place: Place }) {
  return (
    <div class="seen">
      <div class="chips">
        {of.remark ? <span class={`chip${/^(still running|\d+ bytes)/.test(of.remark) ? "" : " bad"}`}>{of.remark}</span> : null}
        {ok === false && !of.remark ? <span class="chip bad">failed</span> : null}
        {of.cut_bytes ? (
          <span class="chip cut" title="The agent did not see them either">
            {as.bytes(of.cut_bytes)} cut from what the agent saw
          </span>
        ) : null}
      </div>
      <Words of={of.text} kind="observation" cut={of.cut_bytes} />
      <Pictures of={of.pictures} place={place} />
      {!of.text.text && !of.pictures.length ? <p class="nothing">nothing was printed</p> : null}
    </div>
  );
}

export function CallView({ of, place }: { of: Call; place: Place }) {
  return (
    <div class={`call${of.step == null ? " unrun" : ""}`}>
      {of.tool ? (
        <p class="tool">
          <b>{of.tool}</b>
          {of.step == null ? <span class="chip bad">not run</span> : <small>step {of.step}</small>}
          {of.seconds == null ? null : <small>{as.seconds(of.seconds)}</small>}
        </p>
      ) : (
        <p class="tool">
          <b>no call</b>
          {of.step == null ? null : <small>step {of.step}</small>}
        </p>
      )}
      <Arguments of={of.arguments} />
      {of.observation ? <Seen of={of.observation} ok={of.ok} place={place} /> : null}
    </div>
  );
}

/** Where the seconds of a turn went, as far as they were measured. */
export function spans(turn: Turn): [string, number][] {
  const { waited_s, prefill_s, decode_s } = turn.usage;
  const inner: [string, number][] = [["waited", waited_s], ["prefill", prefill_s], ["decode", decode_s]];
  const known = inner.reduce((sum, [, value]) => sum + value, 0);
  const policy: [string, number][] = [...inner, ["policy", Math.max(0, (turn.seconds ?? 0) - known)]];
  const tool = turn.calls.reduce((sum, call) => sum + (call.seconds ?? 0), 0);
  return [...policy, ["tool", tool] as [string, number]].filter(([, value]) => value > 0);
}

export const secondsOf = (turn: Turn) => spans(turn).reduce((sum, [, value]) => sum + value, 0);

function Bar({ turn, longest }: { turn: Turn; longest: number }) {
  const all = spans(turn);
  const total = all.reduce((sum, [, value]) => sum + value, 0);
  if (!(total > 0 && longest > 0)) return null;
  let x = 0;
  const said = all.map(([name, value]) => `${name} ${as.seconds(value)}`).join(", ");
  return (
    <svg class="bar" viewBox="0 0 100 3" preserveAspectRatio="none" role="img" aria-label={`Time of the turn: ${said}`}>
      <title>{said}</title>
      <rect class="ground" x="0" y="0" width="100" height="3" />
      {all.map(([name, value]) => {
        const width = (100 * value) / longest;
        x += width;
        return <rect class={`span ${name}`} x={x - width} y="0" width={width} height="3" />;
      })}
    </svg>
  );
}

export function TurnHead({ of, longest }: { of: Turn; longest: number }) {
  const usage = of.usage;
  return (
    <header>
      <h3>Turn {of.number}</h3>
      <span class="figures">
        {usage.prompt_tokens || usage.output_tokens ? (
          <span title={`${as.count(usage.prompt_tokens)} prompt tokens (${as.count(usage.cached_tokens)} cached), ${as.count(usage.output_tokens)} output tokens (${as.count(usage.reasoning_tokens)} of reasoning)`}>
            {as.short(usage.prompt_tokens)} → {as.short(usage.output_tokens)} tokens
          </span>
        ) : null}
        {usage.cost_usd == null ? null : <span>{as.usd(usage.cost_usd)}</span>}
        {secondsOf(of) > 0 ? <span>{as.seconds(secondsOf(of))}</span> : null}
        {usage.num_requests > 1 ? <span>{usage.num_requests} requests</span> : null}
        {of.stop === "end" ? null : <span class="chip bad">stopped: {of.stop}</span>}
      </span>
      <Bar turn={of} longest={longest} />
    </header>
  );
}

export function TurnBody({ of }: { of: Turn }) {
  return (
    <>
      {of.reasoning.text ? (
        <details class="reasoning">
          <summary>Reasoning, {as.plural(of.reasoning.text.length + of.reasoning.left_out, "character")}</summary>
          <Words of={of.reasoning} kind="prose" />
        </details>
      ) : null}
      <Words of={of.text} kind="prose" />
      {of.notes.map((note) => (
        <p class="note">forgiven: {note}</p>
      ))}
    </>
  );
}

export function TurnView({ of, at, longest, place }: { of: Turn; at: boolean; longest: number; place: Place }) {
  return (
    <article class={`turn${at ? " at" : ""}`} id={`turn-${of.number}`} aria-label={`Turn ${of.number}`}>
      <TurnHead of={of} longest={longest} />
      <TurnBody of={of} />
      {of.calls.map((call) => (
        <CallView of={call} place={place} />
      ))}
    </article>
  );
}

export function SaidView({ of, place, brief }: { of: Said; place: Place; brief: boolean }) {
  return (
    <article class={`said ${of.role}`}>
      <header>
        <h3>{brief ? "Brief" : of.role}</h3>
      </header>
      <Words of={of.text} kind={of.role === "tool" ? "observation" : "prose"} />
      <Pictures of={of.pictures} place={place} />
    </article>
  );
}
