import Database from 'better-sqlite3';
import { afterEach, describe, expect, it } from 'vitest';
import type { InstanceStatus } from '../../contract/instance.ts';
import { readMigrations } from '../../store/migrations.ts';
import type { DeploymentIntent, DeploymentRecord } from '../model/deployment-record.ts';
import type { VolumeIntent } from '../model/volume-record.ts';
import { attachVolume } from '../volumes/attach.ts';
import { createVolume } from '../volumes/create.ts';
import { bodyFor, caller, openWorld, type World } from '../volumes/seven-providers.fixture.ts';

const INTENTS = 12;

/** The result of migrating an action from the version before. */
function migrated<Intent>(
  table: 'deployments' | 'volumes',
  action: object,
  more: Record<string, number | null> = {},
): Intent {
  const db = new Database(':memory:');
  db.pragma('foreign_keys = OFF');
  const migrations = readMigrations('marketplace-sqlite').filter(({ version }) => version <= INTENTS);
  for (const { sql } of migrations.slice(0, -1)) db.exec(sql);
  const columns = db.pragma(`table_info(${table})`) as { name: string; type: string; notnull: number }[];
  const needed = columns.filter(({ notnull }) => notnull === 1);
  const row: Record<string, unknown> = {
    ...Object.fromEntries(needed.map(({ name, type }) => [name, type === 'TEXT' ? '{}' : 7])),
    user_id: caller.userId,
    action: JSON.stringify(action),
    ...more,
  };
  const names = Object.keys(row);
  db.prepare(`INSERT INTO ${table} (${names}) VALUES (${names.map((name) => `@${name}`)})`).run(row);
  db.exec(migrations.at(-1)?.sql ?? '');
  const stored = db.prepare(`SELECT action FROM ${table}`).pluck().get() as string;
  db.close();
  return JSON.parse(stored);
}

let world: World;
afterEach(() => world.close());

describe('a change begun by an earlier version is completed [upgrade-intents]', () => {
  it.each<[string, Partial<DeploymentRecord>, InstanceStatus, string]>([
    ['pause', {}, 'STOPPED', 'stopped'],
    ['pause', {}, 'ONLINE', 'running'],
    ['resume', { status: 'stopped', pausedAt: 0 }, 'ONLINE', 'running'],
    ['resume', { status: 'stopped', pausedAt: 0 }, 'STOPPED', 'stopped'],
    ['restart', {}, 'ONLINE', 'running'],
    ['volume', {}, 'ONLINE', 'running'],
  ])('%s of a deployment %o whose machine reads %s', async (kind, changes, shown, status) => {
    world = await openWorld();
    const { clock } = world;
    const old = { kind, since: clock.now() - 60_000, isSent: kind !== 'volume' };
    const action = migrated<DeploymentIntent>('deployments', old);
    expect(action).toEqual({
      ...{ id: 7, kind, since: old.since, by: caller.userId, until: null },
      ...{ attempt: 1, sentAt: old.since, answer: null },
    });
    const { id, providerInstanceId } = await world.deploy('a', 'us-dallas', { ...changes, action });
    world.plain('a').set(providerInstanceId ?? '', { status: shown });
    for (let round = 0; round < 20; round++) {
      await world.settle(world.pollDeployment('a', id));
      await clock.advance(60_000);
    }
    expect(await world.deps.store.read.deployments.byId(id)).toMatchObject({ status, action: null });
  });

  it.each([
    ['create', false, 'available'],
    ['create', true, 'available'],
    ['attach', false, 'attached'],
    ['detach', true, 'available'],
    ['resize', true, 'attached'],
    ['delete', true, 'deleted'],
  ] as const)('%s of a volume, sent: %s', async (kind, isSent, status) => {
    world = await openWorld();
    const { clock, deps } = world;
    const { volumeId, region } = await world.settle(createVolume(deps, caller, bodyFor('a') as never));
    const { id: deploymentId } = await world.deploy('a', region);
    if (kind === 'detach' || kind === 'resize')
      await world.settle(attachVolume(deps, caller, volumeId, deploymentId));
    const since = clock.now() - 60_000;
    const old = { kind, since, ...(kind === 'resize' && { toSizeGb: 300 }) };
    const action = migrated<VolumeIntent>('volumes', old, {
      create_sent_at: kind === 'create' && isSent ? since : null,
    });
    await deps.store.transact(async (tx) => {
      const record = await tx.volumes.byVolumeId(volumeId);
      if (record === null) throw new Error('it is not there');
      const unmade = { status: 'creating', providerVolumeId: null, startedAt: null } as const;
      const attaching = { status: 'attached' } as const;
      await tx.volumes.update({
        ...record,
        ...(kind === 'create' && unmade),
        ...(kind === 'attach' && attaching),
        action,
      });
      if (kind === 'attach')
        await tx.volumes.putAttachment({ volumeId: record.id, deploymentId, state: 'attaching' });
      if (kind === 'detach')
        await tx.volumes.putAttachment({ volumeId: record.id, deploymentId, state: 'detaching' });
    });
    for (let round = 0; round < 20; round++) {
      await world.settle(world.sync('a'));
      await clock.advance(60_000);
    }
    expect(await deps.store.read.volumes.byVolumeId(volumeId)).toMatchObject({ status, action: null });
  });
});
