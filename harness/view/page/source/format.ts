// Numbers and words as people read them.
import type { Exact } from "./data";

export const dash = "–";

export const percent = (value: number | null | undefined, digits = 1) =>
  value == null ? dash : `${(100 * value).toFixed(digits)}%`;

export const interval = (low: number | null, high: number | null) =>
  low == null || high == null ? "" : `${points(low)} to ${points(high)}`;

const points = (value: number) => (100 * value).toFixed(1).replace("-", "−");

export const signed = (value: number) => `${value > 0 ? "+" : value < 0 ? "−" : "±"}${(100 * Math.abs(value)).toFixed(1)}`;

export function seconds(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return dash;
  if (value < 0.0005) return "0 s";
  if (value < 1) return `${Math.round(1000 * value)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  const whole = Math.round(value);
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return hours ? `${hours} h ${minutes} min` : `${minutes} min ${rest} s`;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const count = (value: Exact | null | undefined) =>
  value == null ? dash : typeof value === "number" ? grouped.format(value) : value;

export function short(value: number): string {
  if (value < 10_000) return grouped.format(value);
  if (value < 1e6) return `${(value / 1e3).toFixed(value < 1e5 ? 1 : 0)}k`;
  return `${(value / 1e6).toFixed(1)}M`;
}

export function bytes(value: number): string {
  if (value < 1024) return `${value} bytes`;
  return value < 1 << 20 ? `${(value / 1024).toFixed(1)} KiB` : `${(value / (1 << 20)).toFixed(1)} MiB`;
}

export function usd(value: number | string | null | undefined): string {
  if (value == null) return dash;
  const number = Number(value);
  return number !== 0 && Math.abs(number) < 0.01 ? `$${number.toPrecision(2)}` : `$${number.toFixed(2)}`;
}

export const reward = (value: number | null | undefined) =>
  value == null ? dash : Number.isInteger(value) ? String(value) : value.toFixed(3);

export const words = (name: string) => name.replaceAll("_", " ");

export const domain = (env: string) => env.split("/", 1)[0] ?? env;

export const plural = (number: number, one: string, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
