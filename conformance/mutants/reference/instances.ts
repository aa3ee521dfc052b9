import { ApiError, notFound, refuse } from './errors.ts';
import { json, type ReferenceRequest, type WireAnswer } from './exchange.ts';
import { type Machine, runOn } from './guest.ts';
import { boot, destroy, start, stop } from './lifecycle.ts';
import type { Instance, Offer } from './model.ts';
import { newHostKey, SSH_HOST, SSH_USERNAME, SshEndpoint } from './ssh-endpoint.ts';
import { keyDataOf } from './ssh-key-line.ts';
import { credentialOf } from './token.ts';
import type { CreateRequest, RequestContext } from './validate.ts';
import { readBody, type World } from './world.ts';

/** The resources that a request may currently refer to. */
export function contextOf({ offers, locations, volumes, instances }: World): RequestContext {
  const live = [...instances.values()].filter(({ status }) => !/^(DESTROY|ERROR|OFFLINE)/.test(status));
  return { offers, locations, volumes, instanceRegions: new Map(live.map(({ id, region }) => [id, region])) };
}

/** GET /instances */
export function listInstances(world: World, request: ReferenceRequest): WireAnswer {
  const { rules, instances } = world;
  const listed = [...instances.values()].filter(
    (instance) =>
      !rules.isStranger(request, credentialOf(world, request)) &&
      !rules.isGone(instance) &&
      rules.isListed(instance) &&
      rules.matchesRegion([instance.region], request.query.get('region')),
  );
  return json(200, { instances: listed.map((instance) => toWire(world, instance, request)) });
}

/** POST /instances */
export function createInstance(world: World, request: ReferenceRequest): WireAnswer {
  const { rules, offers, volumes } = world;
  const body = readBody(world, request);
  refuse(rules.validateCreate(body, contextOf(world)));
  const asked = body as Partial<CreateRequest>;
  const [cheapest] = offers;
  const offer = offers.find(({ id }) => id === asked.configuration_id) ?? cheapest;
  const region = asked.region ?? '';
  if (offer === undefined || !rules.claimCapacity(offer, region))
    throw new ApiError(409, 'capacity_unavailable', 'The requested capacity is not available now.');
  const instance = newInstance(world, offer, region, asked);
  world.instances.set(instance.id, instance);
  for (const id of rules.attachesInline(asked.volume_ids ?? []))
    volumes.get(id)?.attachments.set(instance.id, { state: 'attaching' });
  boot(world, instance);
  for (const name of rules.namesOfTwins(asked)) {
    const twin = newInstance(world, offer, region, { ...asked, name });
    world.instances.set(twin.id, twin);
    boot(world, twin);
  }
  return json(201, toWire(world, instance, request));
}

function newInstance(world: World, offer: Offer, region: string, asked: Partial<CreateRequest>): Instance {
  const { rules, clock, instances } = world;
  const blocks = rules.blocksBefore(offer, region);
  const id = `i-${String(instances.size + 1).padStart(5, '0')}`;
  const taken = [...instances.values()]
    .filter(({ status }) => status !== 'DESTROYED')
    .map(({ name }) => name);
  const instance: Instance = {
    id,
    name: rules.uniqueName(asked.name ?? id, taken),
    offer,
    region,
    status: 'PROVISIONING',
    bookedPrice: 0,
    image: rules.imageToDeploy(offer, asked.operating_system_image),
    storageGb: rules.storageGb(offer, asked.root_disk_size_gb),
    keys: rules.keysToInject(asked.ssh_keys ?? []).map(keyDataOf),
    disk: {
      hostKey: newHostKey(),
      files: new Map(),
      owners: new Map(),
      showsVolumes: true,
      ...(blocks !== undefined && { blocks: new Set(blocks) }),
    },
    endpoint: new SshEndpoint({
      machine: () => machineOf(world, instance),
      mayLogin: (attempt) => rules.mayLogin(instance, attempt),
      greeting: () => rules.greeting(instance),
    }),
    isStarting: false,
    createdAtMs: clock.wall(),
    updatedAtMs: clock.wall(),
    cancel: () => {},
  };
  instance.bookedPrice = rules.pricePerHour(instance);
  firstBoot(world, instance, asked);
  return instance;
}

function machineOf({ rules, volumes }: World, instance: Instance): Machine {
  const attached = [...volumes.values()].filter(
    ({ attachments }) => attachments.get(instance.id)?.state === 'attached',
  );
  const volumesGb = attached.map(({ sizeGb }) => sizeGb);
  return { ...instance.disk, hardware: rules.hardware(instance), volumesGb };
}

function firstBoot(world: World, instance: Instance, { cloud_init }: Partial<CreateRequest>): void {
  const { rules } = world;
  const { write_files: written = [], runcmd = [] } = cloud_init ?? {};
  const contents = written.map(({ path, content }) => [path, content] as const);
  const owned = written.filter(({ owner, permissions }) => owner !== undefined || permissions !== undefined);
  const owners = owned.map(({ path, owner = 'root:root', permissions = '0644' }) => {
    return [path, `${permissions.replace(/^0/, '')}:${owner}`] as const;
  });
  instance.disk.files = new Map(rules.filesAtFirstBoot(new Map(contents)));
  instance.disk.owners = new Map(rules.ownersAtFirstBoot(new Map(owners)));
  const machine = machineOf(world, instance);
  for (const command of rules.commandsAtFirstBoot(runcmd)) runOn(machine, command, true);
}

/** GET /instances/{instanceId} */
export function readInstance(world: World, request: ReferenceRequest, id: string): WireAnswer {
  return json(200, toWire(world, findInstance(world, id), request));
}

/** POST /instances/{instanceId}/stop */
export async function stopInstance(world: World, request: ReferenceRequest, id: string): Promise<WireAnswer> {
  const { rules } = world;
  const instance = findInstance(world, id);
  if (!rules.mayStop(instance)) throw invalidState(instance, 'stopped');
  if (rules.takesEffect(instance, 'stop')) await stop(world, instance);
  return json(200, toWire(world, instance, request));
}

/** POST /instances/{instanceId}/start. A second one while the first is under way is not an error. */
export async function startInstance(
  world: World,
  request: ReferenceRequest,
  id: string,
): Promise<WireAnswer> {
  const { rules } = world;
  const instance = findInstance(world, id);
  if (!rules.mayStart(instance)) {
    if (instance.status !== 'STOPPED') throw invalidState(instance, 'started');
    throw new ApiError(
      409,
      'resume_unsupported',
      'This platform cannot resume stopped instances; the instance stays STOPPED and keeps its disk.',
    );
  }
  if (!instance.isStarting && rules.takesEffect(instance, 'start')) await start(world, instance);
  return json(200, toWire(world, instance, request));
}

/** DELETE /instances/{instanceId} */
export async function deleteInstance(
  world: World,
  request: ReferenceRequest,
  id: string,
): Promise<WireAnswer> {
  const { rules, instances } = world;
  const instance = instances.get(id);
  const isDestroyed = instance?.status === 'DESTROYED';
  if (instance === undefined || (isDestroyed && rules.deleteOfDestroyed(instance) === '404'))
    throw notFound('instance');
  const isUnderWay = isDestroyed || instance.status === 'DESTROYING';
  if (!isUnderWay && rules.takesEffect(instance, 'delete')) await destroy(world, instance);
  return json(200, toWire(world, instance, request));
}

/** @throws {ApiError} 404 */
export function findInstance({ rules, instances }: World, id: string): Instance {
  const instance = instances.get(id);
  if (instance === undefined || rules.isGone(instance)) throw notFound('instance');
  return instance;
}

const invalidState = ({ status }: Instance, wanted: string): ApiError =>
  new ApiError(409, 'invalid_state', `The instance is ${status} and cannot be ${wanted}.`, { status });

function toWire(world: World, instance: Instance, request: ReferenceRequest): Record<string, unknown> {
  const { rules, options } = world;
  const { offer, endpoint, error } = instance;
  const isSpot = offer.instanceType === 'SPOT';
  const shown = {
    id: instance.id,
    configuration_id: offer.id,
    region: instance.region,
    status: rules.statusShown(instance),
    ...(endpoint.port > 0 && { public_ip: SSH_HOST, ssh_port: endpoint.port, ssh_username: SSH_USERNAME }),
    ...(error !== undefined && { error }),
    ...((isSpot || options.optionalFields) && { price_per_hour: rules.pricePerHour(instance) }),
    ...(options.optionalFields && optionalFields(world, instance)),
    created_at: rules.timestamp(instance.createdAtMs),
    updated_at: rules.timestamp(instance.updatedAtMs),
  };
  return rules.showInstance(instance, shown, request);
}

function optionalFields({ options }: World, instance: Instance): Record<string, unknown> {
  const { offer, endpoint } = instance;
  const isForwarded = options.network === 'nat' && endpoint.port > 0;
  return {
    name: instance.name,
    private_ip: `10.0.0.${(Number(instance.id.slice(2)) % 250) + 2}`,
    ...(isForwarded && { port_forwards: [{ internal_port: 22, external_port: endpoint.port }] }),
    vcpus: offer.vcpus,
    memory_gb: offer.memoryGb,
    storage_gb: instance.storageGb,
    gpu_count: offer.gpu?.count ?? 0,
    ...(offer.gpu !== undefined && { gpu_type: offer.gpu.type }),
    image: instance.image,
  };
}
