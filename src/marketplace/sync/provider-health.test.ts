import { beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { ProviderHealth } from './provider-health.ts';

let clock: VirtualClock;
let logged: string[];
let health: ProviderHealth;
beforeEach(() => {
  clock = new VirtualClock();
  logged = [];
  const warn = (fields: { problem?: string; reason?: string }) =>
    void logged.push(fields.problem ?? fields.reason ?? '');
  const log = { debug() {}, info: () => void logged.push('over'), warn, error() {} };
  health = new ProviderHealth({ clock, log }, 'provider-a');
});

const down = new ProviderError('timeout', 'no answer');
const unreadable = new ProviderError('invalid', 'status: unknown');

it('logs a provider-wide problem once, however many calls fail', async () => {
  for (let poll = 0; poll < 9; poll++) {
    health.failed(`dep-${poll % 3}`, down);
    await clock.advance(10_000);
  }
  health.failed('dep-1', new ProviderError('unauthorized', '401'));
  expect(logged).toEqual(['timeout', 'unauthorized']);
});

it('logs a flapping problem once, and its end when it stays away', async () => {
  for (let poll = 0; poll < 9; poll++) {
    health.failed('dep-1', down);
    await clock.advance(10_000);
    health.answered('dep-1');
  }
  expect(logged).toEqual(['timeout']);
  await clock.advance(60_000);
  health.answered('dep-1');
  health.answered('dep-1');
  expect(logged).toEqual(['timeout', 'over']);
  health.failed('dep-1', down);
  expect(logged).toEqual(['timeout', 'over', 'timeout']);
});

it('reports a problem of one instance until its answer changes', () => {
  health.failed('dep-1', unreadable);
  health.failed('dep-1', unreadable);
  health.failed('dep-2', unreadable);
  health.ignored('dep-1', 'no address');
  health.answered('dep-1');
  health.ignored('dep-1', 'no address');
  expect(logged).toEqual([
    'invalid: status: unknown',
    'invalid: status: unknown',
    'no address',
    'no address',
  ]);
});

describe('the failing time of calls', () => {
  it('counts each subject alone, and takes the longest', async () => {
    health.failed('dep-1', down);
    await clock.advance(100_000);
    health.failed('dep-1', down);
    health.failed('dep-2', down);
    await clock.advance(50_000);
    health.failed('dep-2', down);
    expect(Object.fromEntries(health.failingMs)).toEqual({ timeout: 100_000 });
    health.answered('dep-1');
    expect(Object.fromEntries(health.failingMs)).toEqual({ timeout: 50_000 });
    health.failed('dep-2', unreadable);
    expect(health.failingMs.size).toBe(0);
  });

  it('drops a subject without a call for 15 minutes, and all of them when another process takes over', async () => {
    health.failed('dep-1', down);
    await clock.advance(14 * 60_000);
    health.failed('dep-1', down);
    await clock.advance(14 * 60_000);
    expect(Object.fromEntries(health.failingMs)).toEqual({ timeout: 14 * 60_000 });
    await clock.advance(60_000);
    expect(health.failingMs.size).toBe(0);
    health.failed('dep-2', down);
    health.clear();
    expect([health.failingMs.size, health.problems]).toEqual([0, []]);
  });
});
