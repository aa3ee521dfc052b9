import { afterAll } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** What a file of tests cost in this process: its imports, its tests, and what these left to be collected. */
    cpuMs?: number;
  }
}

const before = process.cpuUsage();

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from this pattern which fixtures a hook takes.
afterAll(({}, { file }) => {
  const { user, system } = process.cpuUsage(before);
  file.meta.cpuMs = (user + system) / 1000;
});
