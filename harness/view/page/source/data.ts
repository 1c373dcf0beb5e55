// What the page reads: from the server, from a static site, or from files on the disk (see ../export.py).

export type Exact = number | string;

export interface Run {
  name: string;
  version: string;
  problem: string;
  path: string;
  policy?: string;
  plan?: string;
  conditions?: { backend: string; episode_s: number; secret_fingerprint: string; metier: string };
  samples?: number;
  trials?: Exact;
  environments?: string[];
  sessions?: { started_at: string; python: string; platform: string; commit: string; executor: string; concurrency: number }[];
}
export interface Runs {
  runs: Run[];
  live: boolean;
  leaderboard: boolean;
}

export interface Row {
  id: string;
  env: string;
  level: Exact;
  seed: Exact;
  sample: Exact;
  outcome: string;
  limit: string | null;
  reward: number | null;
  passed: boolean | null;
  turns: number;
  prompt_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
  total_s: number;
  missed: string[];
  tries: number;
  kept: boolean;
  failure: string;
  options: string;
  ended_at: string;
}
export interface Table {
  rows: Row[];
  missing: number;
  other: number;
}

interface Estimate {
  value: number | null;
  low: number | null;
  high: number | null;
}
export interface Spent {
  num_turns: number;
  prompt_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cost_usd: string | null;
}
export interface Summary {
  group: string;
  requested: number;
  valid: number;
  invalid: Record<string, number>;
  missing: number;
  passed: number;
  pass_rate: number | null;
  pass_rate_low: number;
  pass_rate_high: number;
  limits: Record<string, number>;
  instances: number;
  pass_at: (Estimate & { k: number })[];
  pass_hat: (Estimate & { k: number })[];
  reward: Estimate;
  per_success: { seconds: number; turns: number; tokens: number; cost_usd: string | null } | null;
  spent: Spent;
}
export interface Report {
  samples: number;
  convention: string;
  intervals: string;
  rows_of_other_settings: number;
  overall: Summary;
  domains: Summary[];
  environments: Summary[];
  levels: Summary[];
}

export interface Text {
  text: string;
  left_out: number;
}
export interface Shown {
  number: number;
  suffix: string;
  width: number;
  height: number;
  problem: string;
}
export interface Observation {
  text: Text;
  pictures: Shown[];
  cut_bytes: number;
  remark: string;
}
export interface Call {
  tool: string;
  arguments: { name: string; value: Text; is_text: boolean }[];
  step: number | null;
  ok: boolean | null;
  seconds: number | null;
  observation: Observation | null;
}
export interface Usage {
  prompt_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
  prefill_s: number;
  decode_s: number;
  waited_s: number;
  num_requests: number;
  cost_usd: string | null;
}
export interface Turn {
  number: number;
  text: Text;
  reasoning: Text;
  notes: string[];
  stop: string;
  usage: Usage;
  seconds: number | null;
  calls: Call[];
}
export interface Said {
  role: string;
  text: Text;
  pictures: Shown[];
}
export interface Check {
  name: string;
  score: number;
  weight: number;
  gate: boolean;
  evidence: Text;
}
export interface Episode {
  id: string;
  env: string;
  level: Exact;
  seed: Exact;
  sample: Exact;
  options: string;
  digest: string;
  image: string;
  outcome: string;
  limit: string | null;
  reward: number | null;
  passed: boolean | null;
  failure: string;
  started_at: string;
  ended_at: string;
  timings_s: Record<string, number | null>;
  checks: Check[];
  history: { failure: string; message: string; run_s: number }[];
  parts: (Said | Turn)[];
  dropped: number;
  cut_bytes: number;
  num_pictures: number;
}
export const isTurn = (part: Said | Turn): part is Turn => "calls" in part;

interface Side {
  valid: number;
  passed: number;
  reward: number | null;
  episodes: string[];
}
export interface Instance {
  env: string;
  options: string;
  level: Exact;
  seed: Exact;
  first: Side;
  second: Side;
}
export interface Paired {
  group: string;
  instances: number;
  first_pass: number;
  second_pass: number;
  difference: number;
  low: number | null;
  high: number | null;
  reward_difference: number;
  reward_low: number | null;
  reward_high: number | null;
  better: number;
  worse: number;
  same: number;
  p_value: number;
}
export interface Compared {
  labels: [string, string];
  comparison: {
    differences: string[];
    only_first: number;
    only_second: number;
    invalid_first: number;
    invalid_second: number;
    invalid_both: number;
    overall: Paired;
    domains: Paired[];
    levels: Paired[];
  };
  instances: Instance[];
}

const source = document.documentElement.dataset["source"];
/** Whether there may be more to see later. */
export const live = source === "live";
/** Whether data lie in scripts, since a page on the disk may read nothing else. */
const inScripts = source === "files";
const onDisk = location.protocol === "file:";
export const start = document.documentElement.dataset["start"] === "leaderboard" ? "leaderboard" : "runs";

type Given = (address: string, value: unknown) => void;
const waiting = new Map<string, (value: unknown) => void>();
const given: Given = (address, value) => waiting.get(address)?.(value);
(window as unknown as { metier: Given }).metier = given;

/** A script that hands its one value to `metier`: what a page on the disk may load. */
function fromScript(address: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    const over = () => {
      waiting.delete(address);
      script.remove();
    };
    waiting.set(address, (value) => {
      over();
      resolve(value);
    });
    script.onerror = () => {
      over();
      reject(new Error(`${address} is not in this site`));
    };
    script.src = `${address}.js`;
    document.head.append(script);
  });
}

async function fromServer(address: string): Promise<unknown> {
  const answer = await fetch(`${address}.${inScripts ? "js" : "json"}`, { credentials: "same-origin" }).catch(() => {
    throw new Error("nobody answers any more: is metier view still running?");
  });
  const text = await answer.text();
  if (inScripts) {
    if (!answer.ok) throw new Error(`${address} is not in this site (${answer.status})`);
    return JSON.parse(text.slice(text.indexOf(",") + 1, text.lastIndexOf(")")));
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${address}: ${answer.status} ${text.slice(0, 200)}`);
  }
}

async function got<T>(address: string): Promise<T> {
  const value = await (onDisk ? fromScript(address) : fromServer(address));
  const error = (value as { error?: unknown } | null)?.error;
  if (typeof error === "string") throw new Error(error);
  return value as T;
}

const most = 40;
const kept = new Map<string, Promise<unknown>>();
/** Kept for as long as `version` is the same; a failure is asked for again. */
function once<T>(address: string, version: string, make: () => Promise<T>): Promise<T> {
  const key = `${address} ${version}`;
  const found = kept.get(key) as Promise<T> | undefined;
  if (found) return found;
  const made = make();
  kept.set(key, made);
  made.catch(() => kept.delete(key));
  for (const old of kept.keys()) {
    if (kept.size <= most) break;
    kept.delete(old);
  }
  return made;
}

export const getRuns = () => got<Runs>("data/runs");

export const getTable = (run: Run) =>
  once(`data/run/${run.name}/rows`, run.version, async (): Promise<Table> => {
    const said = await got<{ columns: string[]; rows: unknown[][]; missing: number; other: number }>(`data/run/${run.name}/rows`);
    const rows = said.rows.map((cells) => Object.fromEntries(said.columns.map((name, at) => [name, cells[at]])) as unknown as Row);
    return { rows, missing: said.missing, other: said.other };
  });

export const getReport = (run: Run) =>
  once(`data/run/${run.name}/report`, run.version, () => got<Report>(`data/run/${run.name}/report`));

/** An episode's file never changes, so it has no version. */
export const getEpisode = (run: string, id: string) =>
  once(`data/run/${run}/${id}`, "", () => got<Episode>(`data/run/${run}/${id}`));

export const getCompared = (first: Run, second: Run) =>
  once(`data/compare/${first.name}/${second.name}`, `${first.version} ${second.version}`, () =>
    got<Compared>(`data/compare/${first.name}/${second.name}`),
  );

export const getBoard = () => got<unknown>("data/leaderboard");

export const pictureAt = (run: string, id: string, one: Shown) => `data/run/${run}/${id}/${one.number}.${one.suffix}`;
