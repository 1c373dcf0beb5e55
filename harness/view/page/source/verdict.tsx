// What the verifier measured.
import { useState } from "preact/hooks";
import type { Check, Episode, Turn } from "./data";
import { isTurn } from "./data";
import * as as from "./format";
import { Badge, Facts, Ledger } from "./parts";

export function Verdict({ of }: { of: Episode }) {
  const total = of.checks.reduce((sum, one) => sum + (one.gate ? 0 : one.weight), 0);
  return (
    <section class="card verdict" aria-label="Verdict">
      <h2>
        Verdict <Badge of={of} /> <span class="reward">{of.reward == null ? "no reward" : <>reward <b>{as.reward(of.reward)}</b></>}</span>
      </h2>
      {of.failure ? <p class="failure">{of.failure}</p> : null}
      {of.checks.length ? (
        <ul class="checks">
          {of.checks.map((one) => (
            <CheckView of={one} share={one.gate || !total ? null : one.weight / total} />
          ))}
        </ul>
      ) : (
        <p class="small">{of.reward == null ? "It was not graded." : "It has no checks."}</p>
      )}
      {of.history.map((one, at) => (
        <p class="note">
          try {at + 1} failed after {as.seconds(one.run_s)}: {one.failure}: {one.message.slice(0, 500)}
        </p>
      ))}
    </section>
  );
}

function CheckView({ of, share }: { of: Check; share: number | null }) {
  const kind = of.score >= 1 ? "passed" : of.score > 0 && !of.gate ? "partly" : "failed";
  const [open, setOpen] = useState(kind !== "passed");
  const evidence = of.evidence.text;
  const long = evidence.length > 90 || evidence.includes("\n");
  return (
    <li class={kind}>
      <p>
        <span class="mark" role="img" aria-label={kind}>
          {kind === "passed" ? "✓" : kind === "partly" ? "◐" : "✗"}
        </span>
        <b>{of.name}</b>
        {of.gate ? <span class="chip" title="Below 1 it makes the reward 0">gate</span> : null}
        <span class="score" title={share == null ? "a gate weighs nothing" : `weight ${of.weight}, ${as.percent(share, 0)} of the reward`}>
          {as.reward(of.score)}
          {share == null ? "" : <small> × {as.percent(share, 0)}</small>}
        </span>
      </p>
      {evidence ? (
        long ? (
          <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
            <summary>evidence</summary>
            <pre>{evidence}</pre>
            {of.evidence.left_out ? <p class="cut">{as.plural(of.evidence.left_out, "more character")} are in the results folder</p> : null}
          </details>
        ) : (
          <pre>{evidence}</pre>
        )
      ) : null}
    </li>
  );
}

export function Used({ of }: { of: Episode }) {
  const turns = of.parts.filter(isTurn);
  const sum = (pick: (turn: Turn) => number) => turns.reduce((total, turn) => total + pick(turn), 0);
  const costs = turns.filter((turn) => turn.usage.cost_usd != null);
  const reasoning = sum((turn) => turn.usage.reasoning_tokens);
  const cached = sum((turn) => turn.usage.cached_tokens);
  return (
    <section class="card" aria-label="Time and tokens">
      <h2>Time and tokens</h2>
      <Ledger timings={of.timings_s} />
      <Facts
        of={[
          ["turns", as.count(turns.length)],
          ["steps", as.count(turns.reduce((total, turn) => total + turn.calls.filter((call) => call.step != null).length, 0))],
          ["prompt tokens", as.count(sum((turn) => turn.usage.prompt_tokens))],
          ["output tokens", as.count(sum((turn) => turn.usage.output_tokens))],
          ...(cached ? ([["cached", as.count(cached)]] as [string, string][]) : []),
          ...(reasoning ? ([["reasoning", as.count(reasoning)]] as [string, string][]) : []),
          ...(costs.length ? ([["cost", as.usd(costs.reduce((total, turn) => total + Number(turn.usage.cost_usd), 0))]] as [string, string][]) : []),
          ...(of.cut_bytes ? ([["cut", as.bytes(of.cut_bytes), "Of outputs, which the agent did not see"]] as [string, string, string][]) : []),
          ...(of.dropped ? ([["calls after the end", as.count(of.dropped)]] as [string, string][]) : []),
        ]}
      />
    </section>
  );
}
