// Two runs, paired by instance; the figures are those of `metier compare`.
import { useMemo, useState } from "preact/hooks";
import { getCompared, type Compared, type Instance, type Paired, type Run } from "./data";
import type { Query } from "./filter";
import * as as from "./format";
import { useKeys } from "./keys";
import { Loading, useLoaded } from "./loading";
import { Facts } from "./parts";
import { become, go, link } from "./route";
import { Rows } from "./rows";

export function ComparePage({ first, second, query }: { first: Run; second: Run; query: Query }) {
  const found = useLoaded(() => getCompared(first, second), [first.name, first.version, second.name, second.version]);
  useKeys([
    { keys: ["s"], what: "exchange the two", does: () => go(link(["compare", second.name, first.name])) },
    { keys: ["u", "Escape"], what: "back to the runs", does: () => go("#/runs") },
  ]);
  return (
    <main>
      <h1>
        <a href={link(["run", second.name])}>{second.name}</a> beside <a href={link(["run", first.name])}>{first.name}</a>
      </h1>
      <Loading of={found} what="comparing">
        {(compared) => <CompareView first={first} second={second} of={compared} query={query} />}
      </Loading>
    </main>
  );
}

const rate = (side: Instance["first"]) => (side.valid ? side.passed / side.valid : null);

export function wayOf(one: Instance): "better" | "worse" | "same" | "left out" {
  const [before, after] = [rate(one.first), rate(one.second)];
  if (before == null || after == null) return "left out";
  return after > before ? "better" : after < before ? "worse" : "same";
}

function CompareView({ first, second, of, query }: { first: Run; second: Run; of: Compared; query: Query }) {
  const made = of.comparison;
  const all = made.overall;
  const way = query["way"] ?? "";
  const rows = useMemo(() => of.instances.filter((one) => !way || wayOf(one) === way), [of, way]);
  const [at, setAt] = useState(-1);
  const here = Math.min(at, rows.length - 1);
  const target = (one: Instance | undefined) => {
    const [left, right] = [one?.first.episodes[0], one?.second.episodes[0]];
    return left && right ? link(["beside", first.name, left, second.name, right]) : "";
  };
  useKeys([
    { keys: ["j", "ArrowDown"], what: "next instance", does: () => setAt(Math.min(rows.length - 1, here + 1)) },
    { keys: ["k", "ArrowUp"], what: "instance before", does: () => setAt(Math.max(0, here - 1)) },
    { keys: ["Enter", "o"], what: "its two episodes side by side", does: () => { const hash = target(rows[here]); if (hash) go(hash); } },
  ]);
  const out = made.only_first + made.only_second + made.invalid_first + made.invalid_second + made.invalid_both;
  return (
    <>
      <p class="policy-line">
        {of.labels[1]} <b>beside</b> {of.labels[0]}
      </p>
      {made.differences.map((line) => (
        <p class="note">Not only the agent differs: {line}.</p>
      ))}
      <Facts
        of={[
          ["difference", <>{as.signed(all.difference)} points <small>{as.interval(all.low, all.high)}</small></>, "Pass rate, mean over instances, second less first; 95% interval clustered by instance"],
          [first.name, as.percent(all.first_pass)],
          [second.name, as.percent(all.second_pass)],
          ["better", as.count(all.better)],
          ["worse", as.count(all.worse)],
          ["same", as.count(all.same)],
          ["p (sign test)", all.p_value < 0.0001 ? "< 0.0001" : all.p_value.toFixed(4)],
          ["left out", as.count(out), `${made.only_first} only the first has, ${made.only_second} only the second; without a valid result: ${made.invalid_first} in the first, ${made.invalid_second} in the second, ${made.invalid_both} in both`],
        ]}
      />
      <div class="scroll">
        <table class="groups">
          <thead>
            <tr>
              <th>group</th>
              <th class="number">instances</th>
              <th class="number">{first.name}</th>
              <th class="number">{second.name}</th>
              <th class="wide">difference</th>
              <th class="number">better</th>
              <th class="number">worse</th>
              <th class="number">p</th>
              <th class="number">reward</th>
            </tr>
          </thead>
          <tbody>
            {[all, ...made.domains, ...made.levels].map((one) => (
              <Group of={one} />
            ))}
          </tbody>
        </table>
      </div>
      <section aria-label="Instances">
        <div class="tabs" role="group" aria-label="Which instances">
          {["", "better", "worse", "same", "left out"].map((name) => (
            <button aria-pressed={way === name} onClick={() => become(link(["compare", first.name, second.name], { ...query, way: name }))}>
              {name || "all"} {as.count(name ? of.instances.filter((one) => wayOf(one) === name).length : of.instances.length)}
            </button>
          ))}
        </div>
        <div class="grid instances" role="table" aria-label="Instances" aria-rowcount={rows.length + 1}>
          <div class="line head" role="row" aria-rowindex={1}>
            {["instance", first.name, second.name, "reward", ""].map((name) => (
              <span role="columnheader">{name}</span>
            ))}
          </div>
          <Rows count={rows.length} height={34} at={here}>
            {(index) => {
              const one = rows[index];
              if (!one) return null;
              const hash = target(one);
              const kind = wayOf(one);
              return (
                <div key={index} class={`line${index === here ? " at" : ""}`} role="row" aria-rowindex={index + 2} aria-current={index === here}>
                  <span role="cell" class="c-env">
                    {hash ? <a href={hash}>{one.env}</a> : one.env} <small>level {one.level} · seed {one.seed} {one.options}</small>
                  </span>
                  <span role="cell">{passed(one.first)}</span>
                  <span role="cell">{passed(one.second)}</span>
                  <span role="cell">
                    {as.reward(one.first.reward)} → {as.reward(one.second.reward)}
                  </span>
                  <span role="cell">
                    <span class={`badge ${{ better: "passed", worse: "failed", same: "plain", "left out": "invalid" }[kind]}`}>{kind}</span>
                  </span>
                </div>
              );
            }}
          </Rows>
        </div>
      </section>
    </>
  );
}

const passed = (side: Instance["first"]) => (side.valid === 0 ? "no valid result" : side.valid === 1 ? (side.passed ? "passed" : "failed") : `${side.passed} of ${side.valid}`);

function Group({ of }: { of: Paired }) {
  const [low, high] = [of.low ?? of.difference, of.high ?? of.difference];
  const x = (value: number) => 50 + 50 * value;
  return (
    <tr>
      <td>{of.group}</td>
      <td class="number">{as.count(of.instances)}</td>
      <td class="number">{as.percent(of.first_pass)}</td>
      <td class="number">{as.percent(of.second_pass)}</td>
      <td class="wide"><div>
        <svg class="rate" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`${of.group}: ${as.signed(of.difference)} points, ${as.interval(of.low, of.high)}`}>
          <rect class="ground" x="0" y="4" width="100" height="2" />
          <rect class="zero" x="49.8" y="0" width="0.4" height="10" />
          <rect class="interval" x={x(low)} y="2" width={Math.max(0.5, x(high) - x(low))} height="6" />
          <rect class="value" x={Math.min(98.8, x(of.difference))} y="0" width="1.2" height="10" />
        </svg>
        <span class="figure">
          {as.signed(of.difference)} <small>{as.interval(of.low, of.high)}</small>
        </span>
      </div></td>
      <td class="number">{as.count(of.better)}</td>
      <td class="number">{as.count(of.worse)}</td>
      <td class="number">{of.p_value < 0.001 ? "< 0.001" : of.p_value.toFixed(3)}</td>
      <td class="number">{as.signed(of.reward_difference)}</td>
    </tr>
  );
}
