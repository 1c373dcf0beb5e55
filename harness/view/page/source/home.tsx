// All runs there are, and how each stands.
import { useEffect, useState } from "preact/hooks";
import { getReport, type Report, type Run, type Runs } from "./data";
import * as as from "./format";
import { useKeys } from "./keys";
import { Wrong } from "./loading";
import { isMarked, toggle, useMarks } from "./marks";
import { Rate } from "./parts";
import { go, link } from "./route";

type Told = Report | string;

/** One report after another, so that the first is not kept waiting by the last. */
function useReports(runs: Run[]): Record<string, Told> {
  const [reports, set] = useState<Record<string, Told>>({});
  useEffect(() => {
    let wanted = true;
    void (async () => {
      for (const run of runs) {
        if (run.problem) continue;
        const told: Told = await getReport(run).catch((error: unknown) => String((error as Error).message));
        if (!wanted) return;
        set((before) => ({ ...before, [run.name]: told }));
      }
    })();
    return () => {
      wanted = false;
    };
  }, [runs.map((run) => run.version).join()]);
  return reports;
}

const markOf = (run: Run) => ({ run: run.name, id: "", label: run.name });

export function Home({ runs: { runs } }: { runs: Runs }) {
  const reports = useReports(runs);
  useMarks();
  const [at, setAt] = useState(0);
  const good = runs.filter((run) => !run.problem);
  const chosen = good[Math.min(at, good.length - 1)];
  useKeys([
    { keys: ["j", "ArrowDown"], what: "next run", does: () => setAt((now) => Math.min(good.length - 1, now + 1)) },
    { keys: ["k", "ArrowUp"], what: "run before", does: () => setAt((now) => Math.max(0, now - 1)) },
    { keys: ["Enter", "o"], what: "open it", does: () => chosen && go(link(["run", chosen.name])) },
    { keys: ["x"], what: "mark it, to compare two", does: () => chosen && toggle(markOf(chosen)) },
  ]);
  return (
    <main>
      <h1>{as.plural(good.length, "run")}</h1>
      <div class="scroll">
        <table class="runs">
          <thead>
            <tr>
              <th class="tick">
                <span class="unseen">Compare</span>
              </th>
              <th>run</th>
              <th>policy</th>
              <th class="wide">pass rate</th>
              <th class="number">passed</th>
              <th class="number">reward</th>
              <th class="number">environments</th>
              <th class="number">tokens</th>
              <th class="number">cost</th>
            </tr>
          </thead>
          <tbody>
            {good.map((run) => (
              <tr class={run === chosen ? "at" : ""} aria-current={run === chosen}>
                <td class="tick">
                  <input type="checkbox" aria-label={`Compare ${run.name}`} checked={isMarked(markOf(run))} onChange={() => toggle(markOf(run))} />
                </td>
                <td>
                  <a href={link(["run", run.name])}>{run.name}</a>
                </td>
                <td class="policy" title={run.policy}>
                  {run.policy}
                </td>
                <Figures of={reports[run.name]} run={run} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {runs
        .filter((run) => run.problem)
        .map((run) => (
          <Wrong>
            <b>{run.name}</b> cannot be shown: {run.problem}
          </Wrong>
        ))}
    </main>
  );
}

function Figures({ of, run }: { of: Told | undefined; run: Run }) {
  if (typeof of === "string")
    return (
      <td colSpan={6} class="bad">
        {of}
      </td>
    );
  if (!of)
    return (
      <td colSpan={6} class="loading">
        counting…
      </td>
    );
  const all = of.overall;
  return (
    <>
      <td class="wide"><div>
        <Rate value={all.pass_rate} low={all.pass_rate_low} high={all.pass_rate_high} label={run.name} />
        <span class="figure">
          {as.percent(all.pass_rate)} <small>{all.pass_rate == null ? "" : as.interval(all.pass_rate_low, all.pass_rate_high)}</small>
        </span>
      </div></td>
      <td class="number">
        {as.count(all.passed)} <small>of {as.count(all.valid)}</small>
        {all.missing ? <small> ({as.count(all.missing)} missing)</small> : null}
      </td>
      <td class="number">{as.reward(all.reward.value)}</td>
      <td class="number">{run.environments?.length}</td>
      <td class="number">{as.short(all.spent.prompt_tokens + all.spent.output_tokens)}</td>
      <td class="number">{as.usd(all.spent.cost_usd)}</td>
    </>
  );
}
