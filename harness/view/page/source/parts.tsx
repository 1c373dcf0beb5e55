// Small pieces that several views share.
import type { ComponentChildren } from "preact";
import * as as from "./format";

interface Ended {
  outcome: string;
  passed: boolean | null;
  limit: string | null;
}

/** How an episode ended, in a word and a colour. */
export function Badge({ of }: { of: Ended }) {
  const graded = of.passed != null;
  const kind = !graded ? "invalid" : of.passed ? "passed" : "failed";
  return (
    <span class={`badge ${kind}`}>
      {graded ? kind : as.words(of.outcome)}
      {of.limit ? <small> {of.limit} limit</small> : null}
    </span>
  );
}

export function Facts({ of }: { of: [string, ComponentChildren, string?][] }) {
  return (
    <dl class="facts">
      {of.map(([name, value, title]) => (
        <div title={title}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A rate with its interval, drawn on 0 to 100%. */
export function Rate({ value, low, high, label }: { value: number | null; low: number | null; high: number | null; label: string }) {
  const known = value != null;
  const text = known ? `${as.percent(value)}, 95% interval ${as.interval(low, high) || "unknown"}` : "no rate";
  return (
    <svg class="rate" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label={`${label}: ${text}`}>
      <title>{text}</title>
      <rect class="ground" x="0" y="4" width="100" height="2" />
      {known && low != null && high != null ? (
        <rect class="interval" x={100 * low} y="2" width={Math.max(0.5, 100 * (high - low))} height="6" />
      ) : null}
      {known ? <rect class="value" x={Math.min(98.8, 100 * value)} y="0" width="1.2" height="10" /> : null}
    </svg>
  );
}

const spans = ["reset", "policy", "tool", "verify"];

/** Where the time of an episode went. */
export function Ledger({ timings }: { timings: Record<string, number | null> }) {
  const known = spans.map((name) => [name, timings[name] ?? 0] as const);
  const total = Math.max(timings["total"] ?? 0, known.reduce((sum, [, value]) => sum + value, 0));
  const all = [...known, ["other", Math.max(0, total - known.reduce((sum, [, value]) => sum + value, 0))] as const];
  if (!(total > 0)) return null;
  let x = 0;
  return (
    <figure class="ledger">
      <svg viewBox="0 0 100 4" preserveAspectRatio="none" role="img" aria-label={all.map(([name, value]) => `${name} ${as.seconds(value)}`).join(", ")}>
        {all.map(([name, value]) => {
          const width = (100 * value) / total;
          x += width;
          return (
            <rect class={`span ${name}`} x={x - width} y="0" width={width} height="4">
              <title>{`${name} ${as.seconds(value)}`}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption>
        {all
          .filter(([, value]) => value > 0)
          .map(([name, value]) => (
            <span class="of">
              <i class={`dot ${name}`} /> {name} <b>{as.seconds(value)}</b>
            </span>
          ))}
        <span class="of">
          total <b>{as.seconds(total)}</b>
        </span>
      </figcaption>
    </figure>
  );
}

export function Select({ label, value, values, onChange }: { label: string; value: string; values: [string, string][]; onChange: (value: string) => void }) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">all</option>
        {values.map(([name, text]) => (
          <option value={name}>{text}</option>
        ))}
        {value && !values.some(([name]) => name === value) ? <option value={value}>{value}</option> : null}
      </select>
    </label>
  );
}

export function Copy({ text, label, shown = "copy" }: { text: string; label: string; shown?: string }) {
  return (
    <button
      class="quiet copy"
      aria-label={`Copy ${label}`}
      title={`Copy ${label}`}
      onClick={(event) => {
        const button = event.currentTarget;
        void navigator.clipboard?.writeText(text).then(() => {
          button.dataset["done"] = "yes";
          setTimeout(() => delete button.dataset["done"], 1200);
        });
      }}
    >
      {shown}
    </button>
  );
}
