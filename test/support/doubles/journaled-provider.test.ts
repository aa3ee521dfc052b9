import { expect, it } from 'vitest';
import { VirtualClock } from '../time/virtual-clock.ts';
import { JournaledProvider } from './journaled-provider.ts';

const request = { configuration_id: 'gpu-1', region: 'eu-one', ssh_keys: ['key'], name: 'name-a' };
const start = Date.UTC(2026, 10, 26);

function openProvider() {
  const clock = new VirtualClock(start);
  const journaled = new JournaledProvider(clock, { bootMs: 300, stopMs: 200, startMs: 300, volumeMs: 100 });
  const deeds = () => journaled.truth().deeds.map(({ kind, at, doneAt }) => [kind, at - start, doneAt - at]);
  return { clock, journaled, deeds };
}

it('makes one machine of two creates with one key, and says that the create came again', () => {
  const { journaled, deeds } = openProvider();
  const first = journaled.create(request, 'key-1');
  expect(journaled.create(request, 'key-1').id).toBe(first.id);
  expect(journaled.create(request, 'key-2').id).not.toBe(first.id);
  expect(deeds()).toEqual([
    ['create', 0, 300],
    ['create', 0, 300],
  ]);
  expect(journaled.truth().repeatedCreates).toEqual(['name-a']);
});

it('writes down when a stop and a start are done, each once', () => {
  const { clock, journaled, deeds } = openProvider();
  const { id } = journaled.create(request, undefined);
  clock.step(1_000);
  journaled.stop(id);
  expect(() => journaled.stop(id)).toThrow(/invalid_state/);
  clock.step(1_000);
  journaled.start(id);
  clock.step(100);
  journaled.start(id);
  clock.step(200);
  expect(journaled.provider.get(id).status).toBe('ONLINE');
  expect(deeds().slice(1)).toEqual([
    ['stop', 1_000, 200],
    ['start', 2_000, 300],
  ]);
});

it('writes down attachments and sizes that changed, and no others', () => {
  const { clock, journaled } = openProvider();
  const instance = journaled.create(request, undefined);
  const volume = journaled.createVolume({ name: 'name-v', size_gb: 100, region: 'eu-one' }, undefined);
  clock.step(1_000);
  for (let time = 0; time < 2; time++) journaled.attach(volume.id, [instance.id]);
  for (let time = 0; time < 2; time++) journaled.resize(volume.id, 150);
  clock.step(1_000);
  journaled.detach(volume.id, undefined);
  clock.step(1_000);
  journaled.detach(volume.id, [instance.id]);
  const kinds = journaled.truth().deeds.map(({ kind }) => kind);
  expect(kinds).toEqual(['create', 'create volume', 'attach', 'resize', 'detach']);
});
