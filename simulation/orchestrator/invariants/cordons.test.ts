import { expect, it } from 'vitest';
import type { CordonRecord } from '../../../src/orchestrator/model/cordon.ts';
import { isNotCordoned } from './cordons.ts';

const sold = { offerId: 'gpu', region: 'eu-south' };
const cordon = (subject: Pick<CordonRecord, 'kind' | 'name' | 'platform'>): CordonRecord => ({
  ...subject,
  id: 'cordon-1',
  since: 0,
  until: null,
  isMaintenance: false,
  reason: null,
  by: 'ann',
});

it.each([
  { kind: 'offer', name: 'gpu', platform: null },
  { kind: 'region', name: 'eu-south', platform: null },
  { kind: 'region', name: 'eu-south', platform: 'east' },
  { kind: 'platform', name: 'east', platform: 'east' },
] as const)('I34: a unit that is sold where $kind $name is cordoned', (subject) => {
  expect(() => isNotCordoned(sold, 'east', [cordon(subject)], 'r1.1')).toThrow('I34');
});

it.each([
  { kind: 'offer', name: 'cpu', platform: null },
  { kind: 'region', name: 'eu-north', platform: null },
  { kind: 'region', name: 'eu-south', platform: 'default' },
  { kind: 'platform', name: 'default', platform: 'default' },
] as const)('a cordon on $kind $name is about something else', (subject) => {
  expect(() => isNotCordoned(sold, 'east', [cordon(subject)], 'r1.1')).not.toThrow();
});
