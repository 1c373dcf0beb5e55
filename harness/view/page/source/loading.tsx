// What is on its way, and what did not come.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

export interface Loaded<T> {
  value?: T;
  error?: string;
  busy: boolean;
}

/** The value of `make`, made again where `keys` change; the value before stays until the next is there. */
export function useLoaded<T>(make: (() => Promise<T>) | null, keys: unknown[]): Loaded<T> {
  const [state, set] = useState<Loaded<T>>({ busy: true });
  useEffect(() => {
    if (!make) return;
    let wanted = true;
    set((before) => ({ ...before, busy: true }));
    make().then(
      (value) => wanted && set({ value, busy: false }),
      (error: unknown) => wanted && set({ error: error instanceof Error ? error.message : String(error), busy: false }),
    );
    return () => {
      wanted = false;
    };
  }, keys);
  return state;
}

export function Wrong({ children }: { children: ComponentChildren }) {
  return (
    <p class="wrong" role="alert">
      {children}
    </p>
  );
}

/** The loaded value's view, or how it stands with it. */
export function Loading<T>({ of, what, children }: { of: Loaded<T>; what: string; children: (value: T) => ComponentChildren }) {
  if (of.value !== undefined) return <>{children(of.value)}</>;
  if (of.error) return <Wrong>{of.error}</Wrong>;
  return (
    <p class="loading" role="status">
      {what}…
    </p>
  );
}
