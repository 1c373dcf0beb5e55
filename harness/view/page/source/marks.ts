// The two that somebody wants side by side, chosen one after the other in whatever views.
import { useEffect, useState } from "preact/hooks";

export interface Mark {
  run: string;
  /** Empty for a whole run. */
  id: string;
  label: string;
}

let marks: Mark[] = [];
const listeners = new Set<(marks: Mark[]) => void>();

const same = (one: Mark, two: Mark) => one.run === two.run && one.id === two.id;

function become(next: Mark[]): void {
  marks = next;
  for (const listener of listeners) listener(marks);
}

export const isMarked = (mark: Mark) => marks.some((one) => same(one, mark));

/** A third one takes the place of the first; runs and episodes do not mix. */
export function toggle(mark: Mark): void {
  if (isMarked(mark)) become(marks.filter((one) => !same(one, mark)));
  else become([...marks.filter((one) => !one.id === !mark.id), mark].slice(-2));
}

export const clear = () => become([]);

export function useMarks(): Mark[] {
  const [, set] = useState(marks);
  useEffect(() => {
    listeners.add(set);
    return () => void listeners.delete(set);
  }, []);
  return marks;
}
