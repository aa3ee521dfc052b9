import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { instanceStatusSchema, instanceTransitions } from './instance.ts';
import { assertTransition, canTransition, IllegalTransition, type TransitionTable } from './transitions.ts';
import { volumeStatusSchema, volumeTransitions } from './volume.ts';

interface PublishedTable {
  initial: string;
  next: Record<string, string[]>;
}

const published: Record<string, PublishedTable> = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../fixtures/transitions.json'), 'utf8'),
);

const tables: [
  resource: string,
  table: TransitionTable<string>,
  states: string[],
  initial: string,
  final: string[],
][] = [
  ['instance', instanceTransitions, instanceStatusSchema.options, 'PROVISIONING', ['DESTROYED']],
  ['volume', volumeTransitions, volumeStatusSchema.options, 'CREATING', ['DELETING']],
];

describe.each(tables)('the transitions of an %s', (resource, table, states, initial, final) => {
  it('are those that fixtures/transitions.json publishes', () => {
    expect(published[resource]).toEqual({ initial, next: table });
  });

  it('reach every state from the first one, and never lead back to it', () => {
    expect([...reachableFrom(table, initial)].sort()).toEqual([...states].sort());
    expect(Object.values(table).flat()).not.toContain(initial);
  });

  it('end in the final states, which every state can reach', () => {
    expect(states.filter((state) => table[state]?.length === 0)).toEqual(final);
    for (const state of states) expect(reachableFrom(table, state), state).toContain(final[0]);
  });

  it('list each next state once, and never the state itself', () => {
    for (const [state, next] of Object.entries(table))
      expect([...new Set(next)].filter((to) => to !== state)).toEqual(next);
  });
});

describe('the transitions of an instance, against the contract', () => {
  it.each([
    ['PROVISIONING', 'ONLINE'],
    ['PROVISIONING', 'ERROR'],
    ['ONLINE', 'STOPPING'],
    ['STOPPING', 'STOPPED'],
    ['STOPPED', 'ONLINE'],
    ['STOPPED', 'OFFLINE'],
    ['PROVISIONING', 'DESTROYING'],
    ['ONLINE', 'DESTROYING'],
    ['STOPPING', 'DESTROYING'],
    ['STOPPED', 'DESTROYING'],
    ['DESTROYING', 'DESTROYED'],
  ] as const)('allow %s → %s, which O: States and transitions lists', (from, to) => {
    expect(canTransition(instanceTransitions, from, to)).toBe(true);
  });

  it.each([
    ['ERROR', 'ONLINE'],
    ['OFFLINE', 'ONLINE'],
    ['OFFLINE', 'STOPPED'],
    ['DESTROYING', 'ONLINE'],
    ['DESTROYING', 'ERROR'],
    ['DESTROYED', 'PROVISIONING'],
    ['PROVISIONING', 'STOPPED'],
    ['ONLINE', 'DESTROYED'],
  ] as const)('refuse %s → %s', (from, to) => {
    expect(() => assertTransition(instanceTransitions, from, to, 'i-1')).toThrow(IllegalTransition);
    expect(() => assertTransition(instanceTransitions, from, to, 'i-1')).toThrow(`i-1: ${from} → ${to}`);
  });
});

/** Returns `start` and every state reachable from it. */
function reachableFrom(table: TransitionTable<string>, start: string): Set<string> {
  const reached = new Set([start]);
  for (const state of reached) for (const next of table[state] ?? []) reached.add(next);
  return reached;
}
