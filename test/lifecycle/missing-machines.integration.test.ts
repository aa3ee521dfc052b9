import { describe, expect, it } from 'vitest';
import type { MachineSpec } from '../../src/orchestrator/model/platform-driver.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import type { TestOrchestrator } from '../support/orchestrator.ts';
import { runMain } from '../support/processes/run-main.ts';
import { volumeRequest } from '../support/rows/requests.ts';
import { until } from '../support/time/until.ts';
import {
  listings,
  metric,
  online,
  refOf,
  startTroubled,
  statuses,
  take,
} from './platform-trouble.fixture.ts';

describe('a proof of absence', () => {
  const rarelyWatched = { reconcile: { watchIntervalMs: 600_000 } };

  it('costs a deletion one listing, and no watch interval', async () => {
    await using troubled = await startTroubled(rarelyWatched);
    const { orchestrator, counts } = troubled;
    const [id = ''] = await online(orchestrator, 1);
    const before = counts.list;
    await orchestrator.request('DELETE', `/instances/${id}`);
    await orchestrator.waitFor(id, 'GONE');
    expect(counts.list - before).toBe(1);
  });

  it('is none while a listing still shows the machine [absence-not-proved-while-listed]', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, say } = troubled;
    const [id = ''] = await online(orchestrator, 1);
    say({ deniesLooks: true });
    await orchestrator.request('DELETE', `/instances/${id}`);
    await listings(troubled, 4);
    expect(await statuses(orchestrator, [id])).toEqual(['DESTROYING']);
    expect((await orchestrator.store.read.work.of(id))?.lastError).toMatch(/still lists it/);
    say({});
    await orchestrator.waitFor(id, 'GONE');
  });

  it('of the only volume takes a listing of the machines that can be believed [absence-of-only-volume]', async () => {
    await using troubled = await startTroubled({ reconcile: { watchIntervalMs: 10_000 } });
    const { orchestrator, say } = troubled;
    await online(orchestrator, 2);
    const { body } = await orchestrator.request('POST', '/volumes', { body: volumeRequest() });
    const path = `/volumes/${body['id']}`;
    const status = async () => (await orchestrator.request('GET', path)).body?.['status'];
    await until('it is there', async () => (await status()) === 'AVAILABLE');
    say({ deniesAll: true });
    await orchestrator.request('DELETE', path);
    const work = () => orchestrator.store.read.work.of(String(body['id']));
    await until('it was not proved', async () => /not proved gone/.test((await work())?.lastError ?? ''));
    expect(await status()).toBe('DELETING');
    say({});
    await until('it is gone', async () => (await orchestrator.request('GET', path)).status === 404);
    expect(await orchestrator.simulator.volumes?.list()).toEqual({ answer: 'listed', items: [] });
  });
});

describe('losses', () => {
  const cap = (least: number) => ({ reconcile: { maxLosses: { share: 0, least } } });
  const held = /has reached the cap on lost instances/;

  it('beyond the cap are held, with one alarm, until they are accepted', async () => {
    await using troubled = await startTroubled(cap(2));
    const { orchestrator, alarms } = troubled;
    const ids = await online(orchestrator, 8);
    for (const id of ids.slice(0, 4)) await take(orchestrator, id);
    const count = async (status: string) =>
      (await statuses(orchestrator, ids)).filter((each) => each === status).length;
    await until('two are lost', async () => (await count('ERROR')) === 2);
    await until('a loss is held', () => alarms(held).length > 0);
    await listings(troubled, 3);
    expect([await count('ERROR'), await count('ONLINE')]).toEqual([2, 6]);
    expect(alarms(held)).toMatchObject([{ fields: { losses: 2, cap: 2 } }]);
    await until(
      'both held losses are reported',
      async () => (await metric(orchestrator, 'berth_losses_held{platform="default"}')) === '2',
    );
    expect(await metric(orchestrator, 'berth_platform_suspect{platform="default"}')).toBe('0');

    const database = ['--database', `sqlite:${orchestrator.databasePath}`];
    const listed = await runMain(['losses', ...database]);
    expect(listed.stdout).toMatch(/^default +2 +5 +2 /m);
    expect(listed.stdout.match(/^inst-\w+ +ONLINE/gm)).toHaveLength(2);
    const accepted = await runMain(['losses', 'accept', '--for', '5m', '--yes', ...database]);
    expect([accepted.code, accepted.stdout]).toEqual([0, expect.stringMatching(/accepted until/)]);
    await until('all four are lost', async () => (await count('ERROR')) === 4);
    expect((await runMain(['losses', ...database])).stdout).toMatch(/No instance is held\./);
  });

  it('are machines that failed, too', async () => {
    await using troubled = await startTroubled(cap(1));
    const { orchestrator, say, alarms } = troubled;
    const ids = await online(orchestrator, 3);
    say({ failsAll: true });
    await until('a loss is held', () => alarms(held).length > 0);
    await listings(troubled, 2);
    expect((await statuses(orchestrator, ids)).sort()).toEqual(['ERROR', 'ONLINE', 'ONLINE']);
  });

  it.each(['0m', '25h', 'ever'])('are not accepted for %s', async (time) => {
    const { code, stderr } = await runMain(['losses', 'accept', '--for', time]);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/give minutes or hours/)]);
  });
});

describe('a machine that is on the platform', () => {
  const spec = (orchestrator: TestOrchestrator, ref: string, note: string): MachineSpec => ({
    ref,
    offerId: 'cpu-4x16',
    hostname: 'late',
    image: 'ubuntu-24.04',
    note,
    vcpus: 4,
    memoryGb: 16,
    rootDiskGb: 80,
    gpuCount: 0,
    gpuType: undefined,
    sshKeys: [newPublicKey()],
    cloudInit: undefined,
    datacenter: orchestrator.catalog.regions.get('eu-frankfurt')?.datacenter ?? '',
  });
  const place = async (orchestrator: TestOrchestrator, ref: string, note: string): Promise<void> => {
    const wanted = spec(orchestrator, ref, note);
    await until(
      'it runs',
      async () => (await orchestrator.simulator.create(wanted, null)).outcome === 'done',
    );
  };
  const isThere = async (orchestrator: TestOrchestrator, ref: string): Promise<boolean> =>
    (await orchestrator.simulator.get(ref)).answer === 'observed';

  it('though its instance is destroyed is destroyed again [destroyed-machine-returns]', async () => {
    await using troubled = await startTroubled();
    const { orchestrator, alarms } = troubled;
    const [id = ''] = await online(orchestrator, 1);
    const ref = await refOf(orchestrator, id);
    await orchestrator.request('DELETE', `/instances/${id}`);
    await orchestrator.waitFor(id, 'GONE');
    await place(orchestrator, ref, '');
    await until('it is gone', async () => !(await isThere(orchestrator, ref)));
    expect(alarms(/of a deleted instance is still there/)).toMatchObject([
      { fields: { instance: id, status: 'DESTROYED' } },
    ]);
    expect((await orchestrator.request('GET', `/instances/${id}`)).status).toBe(404);
  });

  it('and has no row that its note can restore, is an alarm unless another installation made it', async () => {
    await using troubled = await startTroubled({ reconcile: { orphanGraceMs: 100 } });
    const { orchestrator, alarms } = troubled;
    const { store } = orchestrator;
    const ours = (await store.read.installation.get())?.id;
    const note = (installation: string | undefined, id: string) => JSON.stringify({ installation, id });
    await place(orchestrator, 'berth-inst-theirs', note('another', 'inst-theirs'));
    await place(orchestrator, 'berth-inst-unknown', 'made by hand');
    await place(orchestrator, 'berth-inst-ours', note(ours, 'inst-ours'));
    await until('both are alarms', () => alarms(/has no instance/).length === 2);
    await listings(troubled, 3);
    for (const name of ['theirs', 'unknown', 'ours'])
      expect(await isThere(orchestrator, `berth-inst-${name}`)).toBe(true);
    const alarmed = alarms(/has no instance/).map(({ fields }) => fields['ref']);
    expect(alarmed.sort()).toEqual(['berth-inst-ours', 'berth-inst-unknown']);
  });
});
