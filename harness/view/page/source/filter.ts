// Which rows of a run are shown, and in which order; both are in the page's address.
import type { Row } from "./data";
import { domain } from "./format";

export type Query = Record<string, string>;
export const filters = ["q", "env", "domain", "level", "outcome", "passed", "limit", "check"];

const haystacks = new WeakMap<Row, string>();
function haystack(row: Row): string {
  let text = haystacks.get(row);
  if (text === undefined) {
    text = [row.env, `level ${row.level}`, `seed ${row.seed}`, row.outcome, row.limit ?? "", row.missed.join(" "), row.failure, row.options]
      .join("\n")
      .toLowerCase();
    haystacks.set(row, text);
  }
  return text;
}

const verdict = (row: Row) => (row.passed == null ? "invalid" : row.passed ? "yes" : "no");

const columns: Record<string, (row: Row) => number | string> = {
  env: (row) => row.env,
  level: (row) => Number(row.level),
  seed: (row) => Number(row.seed),
  sample: (row) => Number(row.sample),
  outcome: (row) => verdict(row),
  reward: (row) => row.reward ?? -1,
  turns: (row) => row.turns,
  tokens: (row) => row.prompt_tokens + row.output_tokens,
  cost: (row) => row.cost_usd ?? -1,
  time: (row) => row.total_s,
};

export function shown(rows: Row[], query: Query): Row[] {
  const words = (query["q"] ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const is = (name: string, value: string | number | null) => !query[name] || query[name] === String(value ?? "");
  const found = rows.filter(
    (row) =>
      is("env", row.env) &&
      is("domain", domain(row.env)) &&
      is("level", row.level) &&
      is("outcome", row.outcome) &&
      is("passed", verdict(row)) &&
      is("limit", row.limit) &&
      (!query["check"] || row.missed.includes(query["check"])) &&
      words.every((word) => haystack(row).includes(word) || (word.length > 5 && row.id.startsWith(word))),
  );
  const sort = query["sort"] ?? "";
  const by = columns[sort.replace(/^-/, "")];
  if (!by) return found;
  const sign = sort.startsWith("-") ? -1 : 1;
  return found
    .map((row) => [by(row), row] as const)
    .sort(([one], [two]) => sign * (one < two ? -1 : one > two ? 1 : 0))
    .map(([, row]) => row);
}

export function sortedBy(query: Query, column: string): Query {
  const sort = query["sort"] ?? "";
  const next = sort === column ? `-${column}` : sort === `-${column}` ? "" : column;
  return { ...query, sort: next };
}

/** Values of a column with how many rows have each. */
export function values(rows: Row[], of: (row: Row) => (string | number | null)[]): [string, string][] {
  const counts = new Map<string, number>();
  for (const row of rows) for (const value of of(row)) if (value != null && value !== "") counts.set(String(value), (counts.get(String(value)) ?? 0) + 1);
  return [...counts]
    .sort(([one], [two]) => one.localeCompare(two, "en", { numeric: true }))
    .map(([name, number]) => [name, `${name.replaceAll("_", " ")} (${number})`]);
}
