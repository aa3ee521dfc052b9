import type { DeploymentRecord } from '../../../src/marketplace/model/deployment-record.ts';
import type { VolumeRecord } from '../../../src/marketplace/model/volume-record.ts';
import { drawSshKey } from '../../kernel/ssh-keys.ts';
import type { MarketUser } from '../accounts.ts';
import type { CheckedWorld } from '../invariants/inspector.ts';
import { assignDiscountTo, endDiscountOf, topUpOf } from '../operator.ts';
import { configurations, REGIONS } from '../providers/profiles.ts';
import type { Users } from './users.ts';

/** What a command uses of the world. */
export type WorkloadWorld = CheckedWorld & { readonly users: Users };

/** What a user, or the operator for them, can do next, and how often compared with the rest. */
const weights = {
  create: 18,
  createTwice: 2,
  read: 8,
  list: 5,
  pause: 10,
  resume: 10,
  restart: 6,
  rename: 4,
  terminate: 14,
  quote: 2,
  createVolume: 11,
  attach: 7,
  detach: 5,
  readVolume: 3,
  listVolumes: 2,
  resize: 4,
  deleteVolume: 9,
  topUp: 4,
  discount: 3,
  endDiscount: 3,
  foreignId: 3,
  unknown: 1,
};

/** Draws the next command and sends it; the inspector sees its outcome in the commits. */
export function marketCommand(world: WorkloadWorld): void {
  const { users, scheduler, tally } = world;
  const user = users.chance.pick(users.all);
  const what = users.chance.weighted(weights);
  tally.commands++;
  scheduler.noteActivity();
  commands[what](world, user).catch((error: unknown) => world.fail(error));
}

type Command = (world: WorkloadWorld, user: MarketUser) => Promise<unknown>;

const commands: Readonly<Record<keyof typeof weights, Command>> = {
  create,
  createTwice: (world, user) => Promise.all([create(world, user), create(world, user)]),
  read: (world, user) => onDeployment(world, user, 'GET', ''),
  list: (world, user) => world.users.ask(user, { method: 'GET', path: '/api/deployments' }, 'own'),
  pause: (world, user) => onDeployment(world, user, 'POST', '/pause', 'running'),
  resume: (world, user) => onDeployment(world, user, 'POST', '/resume', 'stopped'),
  restart: (world, user) => onDeployment(world, user, 'POST', '/restart', 'running'),
  rename: (world, user) => onDeployment(world, user, 'PATCH', '', undefined, { name: 'renamed' }),
  terminate: (world, user) => onDeployment(world, user, 'DELETE', ''),
  quote: (world, user) =>
    onDeployment(world, user, 'GET', world.users.chance.pick(['/can-terminate', '/pause-quote'])),
  createVolume,
  attach: (world, user) => attach(world, user),
  detach: async (world, user) => {
    const volume = await pickAttached(world, user);
    if (volume === undefined) return;
    await onVolume(world, user, volume.record, 'POST', '/detach', { deploymentId: volume.deploymentId });
  },
  resize: async (world, user) => {
    const volume = pickVolume(world, user);
    if (volume === undefined) return;
    const sizeInGb = volume.sizeGb + world.users.chance.whole(-1, 40);
    await onVolume(world, user, volume, 'PATCH', '', { sizeInGb });
  },
  readVolume: async (world, user) => {
    const volume = pickVolume(world, user);
    if (volume !== undefined) await onVolume(world, user, volume, 'GET', '');
  },
  listVolumes: (world, user) => world.users.ask(user, { method: 'GET', path: '/api/volumes' }, 'own'),
  deleteVolume: async (world, user) => {
    const { inspector, users } = world;
    // Volumes that are still being detached from a deployment that is over.
    const leaving = inspector.volumesOf(user.teamId).filter(({ action }) => action?.kind === 'detach');
    const isLeaving = leaving.length > 0 && users.chance.happens(0.7);
    const volume = isLeaving ? users.chance.pick(leaving) : pickVolume(world, user);
    if (volume !== undefined) await onVolume(world, user, volume, 'DELETE', '');
  },
  topUp: topUpOf,
  discount: assignDiscountTo,
  endDiscount: endDiscountOf,
  foreignId,
  unknown: (world, user) =>
    world.users.ask(user, { method: 'GET', path: `/api/deployments/dep-${'0'.repeat(32)}` }, 'unknown'),
};

async function create(world: WorkloadWorld, user: MarketUser): Promise<void> {
  const { users, providers, inspector } = world;
  const { chance } = users;
  const provider = chance.pick(providers);
  const region = chance.pick(REGIONS);
  const { id: offerId, gpu_count: gpuCount } = chance.pick(configurations);
  const free = inspector
    .volumesOf(user.teamId)
    .filter((volume) => volume.providerId === provider.id && volume.region === region);
  const volumeIds = free.length > 0 && chance.happens(0.4) ? [chance.pick(free).volumeId] : undefined;
  const body = {
    provider: provider.id,
    offerId,
    gpuCount,
    region,
    operatingSystem: 'ubuntu-24.04',
    ssh_public_key: drawSshKey(chance.fork(`key/${world.tally.commands}`), 'user'),
    ...(volumeIds !== undefined && { volumeIds }),
  };
  await users.ask(user, { method: 'POST', path: '/api/deployments', body }, 'own');
}

async function createVolume(world: WorkloadWorld, user: MarketUser): Promise<void> {
  const { chance } = world.users;
  const provider = chance.pick(world.providers);
  const deployment = chance.happens(0.3) ? pickDeployment(world, user, 'running') : undefined;
  const body = {
    name: `vol-${world.tally.commands}`,
    sizeInGb: chance.whole(1, 900),
    provider: provider.id,
    region: chance.pick(REGIONS),
    ...(deployment !== undefined &&
      deployment.providerId === 'able' && {
        provider: 'able',
        region: deployment.region,
        deploymentId: deployment.id,
      }),
  };
  await world.users.ask(user, { method: 'POST', path: '/api/volumes', body }, 'own');
}

async function attach(world: WorkloadWorld, user: MarketUser): Promise<void> {
  const deployment = pickDeployment(world, user, 'running');
  if (deployment === undefined) return;
  const fitting = world.inspector
    .volumesOf(user.teamId)
    .filter(({ providerId, region }) => providerId === deployment.providerId && region === deployment.region);
  if (fitting.length === 0) return;
  const volume = world.users.chance.pick(fitting);
  await onVolume(world, user, volume, 'POST', '/attach', { deploymentId: deployment.id });
}

/** Asks for a deployment of another team. */
async function foreignId(world: WorkloadWorld, user: MarketUser): Promise<void> {
  const { users } = world;
  const other = users.all.find(({ teamId }) => teamId !== user.teamId);
  const deployment = other && pickDeployment(world, other);
  if (deployment === undefined) return;
  const method = users.chance.pick(['GET', 'DELETE']);
  await users.ask(user, { method, path: `/api/deployments/${deployment.id}` }, 'other');
}

async function onDeployment(
  world: WorkloadWorld,
  user: MarketUser,
  method: string,
  action: string,
  status?: DeploymentRecord['status'],
  body?: object,
): Promise<void> {
  const deployment = pickDeployment(world, user, status);
  if (deployment === undefined) return;
  const path = `/api/deployments/${deployment.id}${action}`;
  await world.users.ask(user, { method, path, body }, 'own');
}

function onVolume(
  world: WorkloadWorld,
  user: MarketUser,
  { volumeId }: VolumeRecord,
  method: string,
  action: string,
  body?: object,
): Promise<unknown> {
  const path = `/api/volumes/${volumeId}${action}`;
  return world.users.ask(user, { method, path, body }, 'own');
}

/** One of the team's deployments, in most cases of the status that fits. */
function pickDeployment(
  { inspector, users }: WorkloadWorld,
  { teamId }: MarketUser,
  status?: DeploymentRecord['status'],
): DeploymentRecord | undefined {
  const own = inspector.deploymentsOf(teamId);
  const fitting = own.filter((record) =>
    status === undefined ? record.stoppedAt === null : record.status === status,
  );
  const candidates = fitting.length > 0 && users.chance.happens(0.9) ? fitting : own;
  return candidates.length === 0 ? undefined : users.chance.pick(candidates);
}

function pickVolume({ inspector, users }: WorkloadWorld, { teamId }: MarketUser): VolumeRecord | undefined {
  const own = inspector.volumesOf(teamId);
  return own.length === 0 ? undefined : users.chance.pick(own);
}

/** A volume and a deployment, in most cases one that it is attached to. */
async function pickAttached(
  world: WorkloadWorld,
  user: MarketUser,
): Promise<{ record: VolumeRecord; deploymentId: string } | undefined> {
  const { chance } = world.users;
  const own = world.inspector.volumesOf(user.teamId);
  const isAny = chance.happens(0.2);
  const held = own.filter(({ status }) => status === 'attached');
  const record = held.length > 0 && !isAny ? chance.pick(held) : pickVolume(world, user);
  const deployment = pickDeployment(world, user);
  if (record === undefined || deployment === undefined) return undefined;
  const drawn = chance.next();
  const attachments = await world.database.store.read.volumes.attachmentsOf({ volumeId: record.id });
  const attachment = attachments[Math.floor(drawn * attachments.length)];
  return { record, deploymentId: isAny ? deployment.id : (attachment?.deploymentId ?? deployment.id) };
}
