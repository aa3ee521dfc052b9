import { afterAll, beforeAll } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** What a file of tests cost in this process: its imports, its tests, and what these left to be collected. */
    cpuMs?: number;
    /** Its imports. The first file of a process pays for what the later ones use. */
    importMs?: number;
  }
}

const before = process.cpuUsage();

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from this pattern which fixtures a hook takes.
beforeAll(({}, { file }) => {
  file.meta.importMs = sinceStart();
});

// biome-ignore lint/correctness/noEmptyPattern: vitest reads from this pattern which fixtures a hook takes.
afterAll(({}, { file }) => {
  file.meta.cpuMs = sinceStart();
});

function sinceStart(): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
