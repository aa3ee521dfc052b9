import { createHash } from 'node:crypto';
import { hold } from '../../kernel/violation.ts';
import type { Asked, Reply, WorkloadWorld } from './clients.ts';
import type { CreateSent, Tenant } from './tenant.ts';
import { volumeCommand } from './volume-commands.ts';

/** What a client can do next, and how often compared with the rest. */
const weights = {
  create: 14,
  race: 3,
  retry: 5,
  poll: 26,
  pollAll: 3,
  list: 6,
  stop: 8,
  start: 8,
  restart: 5,
  destroy: 9,
  createThenDelete: 3,
  cycle: 5,
  actOnceOnline: 4,
  createVolume: 4,
  pollVolume: 4,
  attach: 5,
  detach: 3,
  resizeVolume: 8,
  destroyVolume: 3,
  createThenDeleteVolume: 4,
  configurations: 2,
  availability: 3,
  foreignId: 1,
  addKey: 0.4,
  revokeKey: 0.5,
};

/** Draws the next command and sends it; its client learns the outcome when the reply arrives. */
export function command(world: WorkloadWorld): void {
  const { clients } = world;
  const { chance } = clients;
  const tenant = chance.pick(clients.tenants);
  order(world, tenant, chance.weighted(weights));
}

/** Sends a command of the tenant. */
export function order(world: WorkloadWorld, tenant: Tenant, what: keyof typeof weights): void {
  const { scheduler } = world;
  world.tally.commands++;
  scheduler.noteActivity();
  world.running++;
  run(world, tenant, what)
    .catch((error: unknown) => world.fail(error))
    .finally(() => {
      world.running--;
    });
}

async function run(world: WorkloadWorld, tenant: Tenant, what: keyof typeof weights): Promise<void> {
  const { clients } = world;
  const { chance } = clients;
  switch (what) {
    case 'create':
      return create(world, tenant);
    case 'race':
      await Promise.all(
        Array.from({ length: chance.whole(2, 5) }, () => create(world, chance.pick(clients.tenants))),
      );
      return;
    case 'retry':
      return createTwice(world, tenant);
    case 'poll':
      return ofInstance(world, tenant, 'GET', '');
    case 'pollAll':
      for (const id of tenant.instances.slice(-8))
        await clients.ask(tenant, { method: 'GET', path: `/v1/instances/${id}` });
      return;
    case 'list':
      return list(world, tenant);
    case 'stop':
    case 'start':
      return ofInstance(world, tenant, 'POST', `/${what}`);
    case 'restart':
      return restart(world, tenant);
    case 'destroy':
      return ofInstance(world, tenant, 'DELETE', '');
    case 'createThenDelete':
      return createThenDelete(world, tenant);
    case 'cycle':
      return cycle(world, tenant);
    case 'actOnceOnline':
      return actOnceOnline(world, tenant);
    case 'configurations':
    case 'availability':
      await clients.ask(tenant, { method: 'GET', path: `/v1/${what}` });
      return;
    case 'foreignId':
      return foreignId(world, tenant);
    case 'addKey':
      return clients.addKey(tenant);
    case 'revokeKey':
      return clients.revokeKey(tenant);
    default:
      return volumeCommand(world, tenant, what);
  }
}

async function ofInstance(
  world: WorkloadWorld,
  tenant: Tenant,
  method: string,
  action: string,
): Promise<void> {
  const { clients } = world;
  if (tenant.instances.length === 0) return create(world, tenant);
  const id = clients.chance.pick(tenant.instances.slice(clients.chance.happens(0.1) ? 0 : -8));
  if (method === 'DELETE') tenant.deleteSent.add(id);
  await clients.ask(tenant, { method, path: `/v1/instances/${id}${action}` });
}

/** Asks for a restart, or for the state of the last one. */
async function restart({ clients }: WorkloadWorld, tenant: Tenant): Promise<void> {
  if (tenant.instances.length === 0) return;
  const path = `/v1/x/instances/${clients.chance.pick(tenant.instances.slice(-8))}/restart`;
  await clients.ask(tenant, { method: clients.chance.happens(0.7) ? 'POST' : 'GET', path });
}

/** Deletes an instance while it is being created. */
async function createThenDelete(world: WorkloadWorld, tenant: Tenant): Promise<void> {
  const { clients, scheduler } = world;
  const { asked, sent } = drawCreate(world, tenant);
  const id = learn(tenant, sent, await clients.ask(tenant, asked));
  if (id === undefined) return;
  await scheduler.sleep(clients.chance.between(0, 4_000));
  tenant.deleteSent.add(id);
  await clients.ask(tenant, { method: 'DELETE', path: `/v1/instances/${id}` });
}

/** Creates an instance, stops it and starts it again. */
async function cycle(world: WorkloadWorld, tenant: Tenant): Promise<void> {
  const { asked, sent } = drawCreate(world, tenant);
  const id = learn(tenant, sent, await world.clients.ask(tenant, asked));
  if (id === undefined) return;
  const path = `/v1/instances/${id}`;
  if (!(await becomes(world, tenant, path, 'ONLINE'))) return;
  await world.clients.ask(tenant, { method: 'POST', path: `${path}/stop` });
  if (!(await becomes(world, tenant, path, 'STOPPED'))) return;
  await world.clients.ask(tenant, { method: 'POST', path: `${path}/start` });
}

/** Stops, restarts or deletes an instance as soon as it is ONLINE; the platform may not show its machine yet. */
async function actOnceOnline(world: WorkloadWorld, tenant: Tenant): Promise<void> {
  const { clients } = world;
  const { asked, sent } = drawCreate(world, tenant);
  const id = learn(tenant, sent, await clients.ask(tenant, asked));
  const path = `/v1/instances/${id}`;
  if (id === undefined || !(await becomes(world, tenant, path, 'ONLINE', EAGER))) return;
  const what = clients.chance.pick(['stop', 'restart', 'destroy'] as const);
  if (what === 'destroy') tenant.deleteSent.add(id);
  const orders = {
    stop: { method: 'POST', path: `${path}/stop` },
    restart: { method: 'POST', path: `/v1/x/instances/${id}/restart` },
    destroy: { method: 'DELETE', path },
  };
  await clients.ask(tenant, orders[what]);
}

/** How a client polls: as the contract asks for, or as fast as it can. */
const PATIENT = { polls: 12, everyMs: 10_000 };
const EAGER = { polls: 60, everyMs: 500 };

/** Polls until the instance has the status; false: the client gave up before. */
async function becomes(
  world: WorkloadWorld,
  tenant: Tenant,
  path: string,
  status: string,
  { polls, everyMs } = PATIENT,
): Promise<boolean> {
  for (let count = 0; count < polls && !world.isCalm; count++) {
    await world.scheduler.sleep(everyMs);
    const reply = await world.clients.ask(tenant, { method: 'GET', path });
    if ((reply?.body as { status?: string } | undefined)?.status === status) return true;
  }
  return false;
}

/** Asks for an instance of another tenant. */
async function foreignId(world: WorkloadWorld, tenant: Tenant): Promise<void> {
  const { clients } = world;
  const other = clients.tenants.find(({ name }) => name !== tenant.name);
  if (other === undefined || other.instances.length === 0) return;
  const path = `/v1/instances/${clients.chance.pick(other.instances)}`;
  const reply = await clients.ask(tenant, { method: clients.chance.pick(['GET', 'DELETE']), path });
  world.inspector.check(() =>
    hold('I18', reply === undefined || reply.status >= 400, () => `${tenant.name} reached ${path}`),
  );
}

async function list(world: WorkloadWorld, tenant: Tenant): Promise<void> {
  const reply = await world.clients.ask(tenant, { method: 'GET', path: '/v1/instances' });
  if (reply?.status !== 200) return;
  const { instances } = reply.body as { instances: { id: string; name?: string }[] };
  for (const { id, name } of instances) {
    tenant.learnInstance(id);
    const sent = tenant.creates.get(name ?? '');
    // Now the client knows the outcome of a create whose reply was lost.
    if (sent?.outcome === 'unknown') sent.outcome = 'created';
  }
}

function drawCreate({ clients, catalog }: WorkloadWorld, tenant: Tenant): { asked: Asked; sent: CreateSent } {
  const { chance } = clients;
  const offer = chance.pick([...catalog.offers.values()]);
  const { region } = chance.pick(offer.placements);
  const name = `${tenant.name}-i${tenant.creates.size + 1}`;
  const sent: CreateSent = { name, outcome: 'unknown', isRetried: false, isForgotten: false };
  tenant.creates.set(name, sent);
  const keys = chance.happens(0.2) ? clients.sshKeys.slice(0, 2) : [chance.pick(clients.sshKeys)];
  const body = {
    configuration_id: offer.id,
    region,
    name,
    ssh_keys: keys,
    ...(chance.happens(0.1) && { cloud_init: { packages: ['htop'] } }),
    ...(chance.happens(0.15) && tenant.volumes.length > 0 && { volume_ids: [chance.pick(tenant.volumes)] }),
  };
  return { asked: { method: 'POST', path: '/v1/instances', body }, sent };
}

async function create(world: WorkloadWorld, tenant: Tenant): Promise<void> {
  const { asked, sent } = drawCreate(world, tenant);
  learn(tenant, sent, await world.clients.ask(tenant, asked));
}

function learn(tenant: Tenant, sent: CreateSent, reply: Reply | undefined): string | undefined {
  if (reply === undefined || reply.status >= 500) return undefined;
  if (reply.status !== 201) {
    sent.outcome = 'refused';
    return undefined;
  }
  sent.outcome = 'created';
  const { id } = reply.body as { id: string };
  tenant.learnInstance(id);
  return id;
}

/** I10: creates with one Idempotency-Key, at once and again later, make one instance. */
async function createTwice(world: WorkloadWorld, tenant: Tenant): Promise<void> {
  const { clients, scheduler } = world;
  const { asked, sent } = drawCreate(world, tenant);
  sent.isRetried = true;
  const idempotencyKey = createHash('sha256').update(sent.name).digest('hex').slice(0, 20);
  const keyed = { ...asked, idempotencyKey };
  const both = clients.chance.happens(0.5)
    ? await Promise.all([clients.ask(tenant, keyed), clients.ask(tenant, keyed)])
    : [await clients.ask(tenant, keyed)];
  await scheduler.sleep(clients.chance.between(0, 20_000));
  const replies = [...both, await clients.ask(tenant, keyed)];
  const ids = new Set<string>();
  for (const reply of replies) {
    const id = learnRetry(tenant, sent, reply);
    if (id !== undefined) ids.add(id);
  }
  if (sent.isForgotten) return;
  world.inspector.check(() =>
    hold('I10', ids.size <= 1, () => `${sent.name} was made ${ids.size} times`, [...ids]),
  );
  const other = await clients.ask(tenant, { ...keyed, body: { ...asked.body, name: `${sent.name}-other` } });
  if (ids.size === 0 || other === undefined || sent.isForgotten) return;
  world.inspector.check(() =>
    hold('I10', other.status !== 201, () => `${sent.name}: its key was taken for another request`, [...ids]),
  );
}

/** A refusal says nothing about an earlier try whose reply was lost. */
function learnRetry(tenant: Tenant, sent: CreateSent, reply: Reply | undefined): string | undefined {
  const before = sent.outcome;
  const id = learn(tenant, sent, reply);
  if (id === undefined) sent.outcome = before;
  return id;
}
