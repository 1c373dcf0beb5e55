// A leaderboard: groups of rows that may be compared, best first. The ranks and figures are the file's.
import { useState } from "preact/hooks";
import { getBoard, type Runs, type Summary } from "./data";
import type { Query } from "./filter";
import * as as from "./format";
import { useKeys } from "./keys";
import { Loading, useLoaded } from "./loading";
import { Copy, Facts, Rate, Select } from "./parts";
import { become, link } from "./route";

interface End {
  outcome: string;
  reward: number | null;
  passed: boolean | null;
}
interface BoardRow {
  id: string;
  submitter: string;
  received_at: string;
  state: string;
  rank: number | null;
  rank_best: number | null;
  not_ranked: string[];
  name: string;
  agent: string;
  model: string;
  commit: string;
  command: string;
  policy: { name: string; settings: Record<string, unknown> };
  harness_commits: string[];
  backend: string;
  overall: Summary;
  domains: Summary[];
  cost_usd: string | null;
  cost_declared: boolean;
  reruns: number;
  secrets_removed: number;
  same_calls_as: string[];
  refuted_before: number;
  verification: {
    to_replay: number;
    replayed: number;
    agreed: number;
    agreed_late: number;
    flattered: number;
    whole: boolean;
    same_observations: number;
    num_observations: number;
    disagreed: { env_id: string; level: number; seed: number; sample: number; recorded: End; replayed: End; flattered: boolean }[];
  };
}
interface Group {
  id: string;
  terms: {
    suite: string;
    split: string;
    environments: { id: string; levels: number[]; seeds: unknown; digest: string; image: string; image_digest: string }[];
    samples: number;
    requested: number;
    secret_fingerprint: string;
    metier: string;
    episode_s: number;
  };
  current: boolean;
  rows: BoardRow[];
}
interface Board {
  kind: string;
  schema_version: number;
  groups: Group[];
}

async function read(): Promise<Board> {
  const said = (await getBoard()) as Board;
  if (said?.kind !== "metier leaderboard" || said.schema_version !== 1) throw new Error("this is no leaderboard that this page knows (kind and schema_version of leaderboard.json)");
  return said;
}

export function BoardPage({ query, runs }: { query: Query; runs: Runs | undefined }) {
  const board = useLoaded(read, []);
  return (
    <main>
      <h1>Leaderboard</h1>
      <Loading of={board} what="reading the board">
        {(found) => <BoardView board={found} query={query} runs={runs} />}
      </Loading>
    </main>
  );
}

function BoardView({ board, query, runs }: { board: Board; query: Query; runs: Runs | undefined }) {
  const shown = new Set(runs?.runs.map((run) => run.name));
  const suites = [...new Set(board.groups.map((group) => group.terms.suite))];
  const groups = board.groups.filter((group) => !query["suite"] || group.terms.suite === query["suite"]);
  const rows = groups.flatMap((group) => group.rows);
  const [at, setAt] = useState(-1);
  const here = Math.min(at, rows.length - 1);
  const open = query["row"] ?? "";
  const toggle = (row: BoardRow | undefined) => row && become(link(["leaderboard"], { ...query, row: open === row.id ? "" : row.id }));
  useKeys([
    { keys: ["j", "ArrowDown"], what: "next row", does: () => setAt(Math.min(rows.length - 1, here + 1)) },
    { keys: ["k", "ArrowUp"], what: "row before", does: () => setAt(Math.max(0, here - 1)) },
    { keys: ["Enter", "o"], what: "all that is known of it", does: () => toggle(rows[here]) },
  ]);
  if (!board.groups.length) return <p class="loading">Nothing was submitted yet.</p>;
  return (
    <>
      {suites.length > 1 ? (
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <Select label="suite" value={query["suite"] ?? ""} values={suites.map((name) => [name, name])} onChange={(suite) => become(link(["leaderboard"], { ...query, suite }))} />
        </form>
      ) : null}
      {groups.map((group) => (
        <section class="card board" aria-label={`${group.terms.suite}, ${group.terms.split}`}>
          <h2>
            {group.terms.suite} <small>{group.terms.split} seeds</small> {group.current ? null : <span class="badge invalid">earlier environments</span>}
          </h2>
          <p class="small">
            {as.plural(group.terms.requested, "trial")} of {as.plural(group.terms.environments.length, "environment")}, {as.plural(group.terms.samples, "sample")} each · hub secret <code>{group.terms.secret_fingerprint}</code> · metier {group.terms.metier} · group <code>{group.id}</code>. Ranks
            hold within the group only.
          </p>
          <div class="scroll">
            <table>
              <thead>
                <tr>
                  <th class="number" title="By pass rate; in brackets the rank it may have had by luck alone">rank</th>
                  <th>name</th>
                  <th class="wide">pass rate</th>
                  <th>replayed</th>
                  <th class="number">cost</th>
                  <th class="number">tokens per success</th>
                  <th>agent</th>
                </tr>
              </thead>
              <tbody>
                {group.rows.map((row) => (
                  <Line row={row} at={row === rows[here]} open={row.id === open} toggle={() => toggle(row)} run={shown.has(row.id) ? row.id : ""} />
                ))}
              </tbody>
            </table>
          </div>
          <details class="made">
            <summary>What these rows share</summary>
            <ul class="small">
              {group.terms.environments.map((one) => (
                <li>
                  {one.id}, levels {one.levels.join(", ")}, seeds {String(typeof one.seeds === "string" ? one.seeds : JSON.stringify(one.seeds))} · digest <code>{one.digest.slice(0, 12)}</code> · image {one.image} <code>{one.image_digest.slice(0, 12)}</code>
                </li>
              ))}
            </ul>
          </details>
        </section>
      ))}
    </>
  );
}

const states: Record<string, string> = { verified: "passed", refuted: "failed", queued: "plain", unverified: "invalid" };

function Line({ row, at, open, toggle, run }: { row: BoardRow; at: boolean; open: boolean; toggle: () => void; run: string }) {
  const all = row.overall;
  const seen = row.verification;
  return (
    <>
      <tr class={at ? "at" : ""} aria-current={at}>
        <td class="number">
          {row.rank == null ? as.dash : <b>{row.rank}</b>} {row.rank_best != null && row.rank_best !== row.rank ? <small>({row.rank_best})</small> : null}
        </td>
        <td>
          <button class="quiet name" aria-expanded={open} onClick={toggle}>
            {open ? "▾" : "▸"} {row.name}
          </button>
          {row.not_ranked.length ? <p class="small why">{row.not_ranked.join("; ")}</p> : null}
        </td>
        <td class="wide"><div>
          <Rate value={all.pass_rate} low={all.pass_rate_low} high={all.pass_rate_high} label={row.name} />
          <span class="figure">
            {as.percent(all.pass_rate)} <small>{all.pass_rate == null ? "" : as.interval(all.pass_rate_low, all.pass_rate_high)}</small>
          </span>
        </div></td>
        <td>
          <span class={`badge ${states[row.state] ?? "plain"}`}>{row.state}</span>{" "}
          <small>
            {as.count(seen.agreed)} of {as.count(seen.replayed)} agreed
          </small>
        </td>
        <td class="number" title={row.cost_declared ? "as the submitter says" : undefined}>
          {as.usd(row.cost_usd)}
          {row.cost_declared ? "*" : ""}
        </td>
        <td class="number">{all.per_success ? as.short(all.per_success.tokens) : as.dash}</td>
        <td>
          {row.agent}, {row.model}
        </td>
      </tr>
      {open ? (
        <tr>
          <td colSpan={7}>
            <More row={row} run={run} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function More({ row, run }: { row: BoardRow; run: string }) {
  const seen = row.verification;
  const all = row.overall;
  return (
    <div class="more-of">
      {run ? (
        <p>
          <a href={link(["run", run])}>Its episodes</a>
        </p>
      ) : null}
      <Facts
        of={[
          ["valid", `${as.count(all.valid)} of ${as.count(all.requested)}`],
          ["invalid", as.count(Object.values(all.invalid).reduce((sum, number) => sum + number, 0))],
          ["mean reward", as.reward(all.reward.value)],
          ["run again", as.count(row.reruns)],
          ["replays", `${as.count(seen.replayed)} of ${as.count(seen.to_replay)}, ${as.count(seen.agreed_late)} agreed late, ${as.count(seen.flattered)} flattered`],
          ["same observations", `${as.count(seen.same_observations)} of ${as.count(seen.num_observations)}`],
          ["submitted by", row.submitter],
          ["received", row.received_at],
          ["agent's commit", <code>{row.commit}</code>],
          ["harness", <code>{row.harness_commits.map((one) => one.slice(0, 12)).join(", ") || "unknown"}</code>],
          ["sandboxes", row.backend],
          ["policy", row.policy.name],
          ["id", <code>{row.id.slice(0, 12)}</code>],
          ...(row.secrets_removed ? ([["secrets removed", as.count(row.secrets_removed)]] as [string, string][]) : []),
          ...(row.refuted_before ? ([["refuted before", as.count(row.refuted_before)]] as [string, string][]) : []),
        ]}
      />
      <p class="small">
        <code>{row.command}</code> <Copy text={row.command} label="the command" />
      </p>
      {row.same_calls_as.length ? <p class="note">Exactly the same calls as {row.same_calls_as.map((one) => one.slice(0, 12)).join(", ")}.</p> : null}
      <div class="domains">
        {row.domains.map((one) => (
          <div>
            <small>
              {one.group} {as.count(one.passed)} of {as.count(one.valid)}
            </small>
            <Rate value={one.pass_rate} low={one.pass_rate_low} high={one.pass_rate_high} label={one.group} />
          </div>
        ))}
      </div>
      {seen.disagreed.length ? (
        <ul class="small">
          {seen.disagreed.map((one) => (
            <li class={one.flattered ? "bad" : ""}>
              {one.env_id} level {one.level} seed {one.seed} sample {one.sample}: recorded {said(one.recorded)}, replayed {said(one.replayed)}
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  );
}

const said = (end: End) => `${as.words(end.outcome)} ${end.passed == null ? "" : end.passed ? "passed" : "failed"} ${as.reward(end.reward)}`;
