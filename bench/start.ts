import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { printLine, printTable } from '../src/runtime/print.ts';
import { measureHelp, measureServe, type Start } from './start/measure.ts';
import { mountImage, type Way, waysToRun } from './start/ways.ts';

/** The best of several cold starts of one way to run `berth`. */
export interface StartFigures extends Start {
  name: string;
  aim: Way['aim'];
  /** `berth conformance --help`, milliseconds. */
  helpMs: number;
}

/** Measures every available way to run `berth`: a checkout, the package, and the image if it was built. */
export async function measureStarts(starts: number): Promise<StartFigures[]> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
  const image = mountImage();
  try {
    const ways = [...(await waysToRun(folder)), ...(image === undefined ? [] : [image.way])];
    const figures = new Map<Way, StartFigures>();
    // In turns, so that other load on the machine affects all alike. The first round fills caches.
    for (let round = 0; round <= starts; round++)
      for (const way of ways) {
        const place =
          way.name === 'image' ? `/tmp/berth-${round}.db` : join(folder, `${round}-${ways.indexOf(way)}.db`);
        const start = await measureServe(way, place);
        const helpMs = await measureHelp(way);
        if (round > 0)
          figures.set(way, least(figures.get(way), { name: way.name, aim: way.aim, ...start, helpMs }));
      }
    return [...figures.values()];
  } finally {
    image?.unmount();
    rmSync(folder, { recursive: true, force: true });
  }
}

function least(before: StartFigures | undefined, now: StartFigures): StartFigures {
  if (before === undefined) return now;
  return {
    ...now,
    startMs: Math.min(before.startMs, now.startMs),
    cpuMs: Math.min(before.cpuMs, now.cpuMs),
    peakMb: Math.min(before.peakMb, now.peakMb),
    helpMs: Math.min(before.helpMs, now.helpMs),
  };
}

/** Prints one row for each way to run `berth`, with aims after the figures. */
export function printStarts(figures: readonly StartFigures[]): void {
  const cell = (value: number, aim?: number): string =>
    aim === undefined ? value.toFixed(0) : `${value.toFixed(0)} (${aim})`;
  printTable(
    [
      'berth serve',
      'first 200, ms (aim)',
      'CPU, ms',
      'peak memory, MB (aim)',
      'conformance --help, ms (aim)',
    ],
    figures.map(({ name, startMs, cpuMs, peakMb, helpMs, aim }) => [
      name,
      cell(startMs, aim.startMs),
      cell(cpuMs),
      cell(peakMb, aim.peakMb),
      cell(helpMs, aim.helpMs),
    ]),
  );
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { starts: { type: 'string', default: '10' }, json: { type: 'boolean', default: false } },
  });
  const figures = await measureStarts(Number(values.starts));
  if (values.json) printLine(JSON.stringify(figures));
  else printStarts(figures);
}
