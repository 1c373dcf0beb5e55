// A long list of which only the part in sight is in the document, as the page scrolls.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const beyond = 12;

export function Rows({ count, height, at, children }: { count: number; height: number; at: number; children: (index: number) => ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [[first, last], set] = useState<[number, number]>([0, 60]);
  useLayoutEffect(() => {
    const look = () => {
      const top = box.current?.getBoundingClientRect().top ?? 0;
      const from = Math.max(0, Math.floor(-top / height) - beyond);
      const to = Math.ceil((innerHeight - top) / height) + beyond;
      set(([one, two]) => (one === from && two === to ? [one, two] : [from, to]));
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [height, count]);
  const moved = useRef(false);
  useEffect(() => {
    if (!moved.current) {
      moved.current = true;
      if (at <= 0) return;
    }
    const top = (box.current?.getBoundingClientRect().top ?? 0) + at * height;
    if (top < 110) scrollBy(0, top - 110);
    else if (top + height > innerHeight - 20) scrollBy(0, top + height - innerHeight + 20);
  }, [at]);
  const to = Math.min(count, last);
  const from = Math.min(first, to);
  return (
    <div ref={box} class="list" role="rowgroup" style={{ height: `${count * height}px` }}>
      <div class="window" style={{ transform: `translateY(${from * height}px)` }}>
        {Array.from({ length: to - from }, (_, index) => children(from + index))}
      </div>
    </div>
  );
}
