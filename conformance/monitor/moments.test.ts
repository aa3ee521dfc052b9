import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { exponential, Moments } from './moments.ts';
import { openState, type State } from './state.ts';

const NOW = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;

async function opened(): Promise<State> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-moments-'));
  const state = await openState(folder);
  onTestFinished(() => {
    state.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return state;
}

it('the gaps are exponential: their mean, and the share above the mean', async () => {
  const moments = new Moments(await opened(), 'seed', 'a', 'read');
  const gaps: number[] = [];
  for (let now = NOW; gaps.length < 2000; ) {
    const next = moments.next(now, 2);
    gaps.push((next - now) / HOUR_MS);
    now = next;
  }
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  expect(mean).toBeGreaterThan(1.85);
  expect(mean).toBeLessThan(2.15);
  const above = gaps.filter((gap) => gap > 2).length / gaps.length;
  expect(above).toBeGreaterThan(Math.exp(-1) - 0.04);
  expect(above).toBeLessThan(Math.exp(-1) + 0.04);
});

it('a gap is finite, whatever is drawn', () => {
  expect(exponential(0, 1)).toBeCloseTo(0);
  expect(exponential(1 - 2 ** -53, 1)).toBeLessThan(40);
});

it('a restart keeps the moment; a missed one is not made up', async () => {
  const state = await opened();
  const dueAt = new Moments(state, 'seed', 'a', 'read').resume(NOW, 2);
  const afterRestart = new Moments(state, 'seed', 'a', 'read');
  expect(afterRestart.resume(NOW + 1, 2)).toBe(dueAt);
  const late = afterRestart.resume(dueAt + HOUR_MS, 2);
  expect(late).toBeGreaterThan(dueAt + HOUR_MS);
  expect(state.moment('a', 'read')).toMatchObject({ drawn: 2 });
});

it('a moment that was drawn before the clock was set back is drawn again', async () => {
  const moments = new Moments(await opened(), 'seed', 'a', 'read');
  const week = 7 * 24 * HOUR_MS;
  moments.resume(NOW + week, 1);
  expect(moments.resume(NOW, 1)).toBeLessThan(NOW + week);
});
