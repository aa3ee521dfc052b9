import { settleAttachments } from './attachments.ts';
import { ApiError, notFound, refuse } from './errors.ts';
import { json, type ReferenceRequest, type WireAnswer } from './exchange.ts';
import { contextOf, findInstance } from './instances.ts';
import { cycle } from './lifecycle.ts';
import type { Instance, Volume } from './model.ts';
import type { CreateVolumeRequest } from './validate.ts';
import { readBody, type World } from './world.ts';

const PRICE_PER_GB_HOUR = 0.0001;

/** GET /volumes/locations */
export function listLocations({ rules, options, locations }: World): WireAnswer {
  const shown = locations.filter(rules.isLocationListed).map((location) => {
    const { id, name, types, countryCode } = location;
    return rules.showLocation(location, {
      id,
      name,
      ...(options.optionalFields && { types, country_code: countryCode }),
    });
  });
  return json(200, { locations: shown });
}

/** POST /volumes */
export async function createVolume(world: World, request: ReferenceRequest): Promise<WireAnswer> {
  const { rules, clock, volumes, locations } = world;
  const body = readBody(world, request);
  refuse(rules.validateVolume(body, contextOf(world)));
  const { name, size_gb, region, type, instance_ids } = body as Partial<CreateVolumeRequest>;
  const id = `v-${String(volumes.size + 1).padStart(5, '0')}`;
  const volume: Volume = {
    id,
    name: name ?? id,
    sizeGb: size_gb ?? 1,
    region: region ?? '',
    type: type ?? locations.find((location) => location.id === region)?.types[0] ?? 'nvme',
    isCreated: false,
    isDeleted: false,
    attachments: new Map(),
    createdAtMs: clock.wall(),
  };
  volumes.set(id, volume);
  for (const instanceId of rules.instancesToAttach(volume, instance_ids ?? []))
    volume.attachments.set(instanceId, { state: 'attaching' });
  const finish = () => {
    volume.isCreated = true;
    return proceed(world, volume);
  };
  const createMs = rules.volumeCreateMs(volume);
  if (createMs === 0) await finish();
  else clock.after(createMs, () => void clock.during(finish()));
  return json(201, toWire(world, volume, request));
}

/** GET /volumes/{volumeId} */
export function readVolume(world: World, request: ReferenceRequest, id: string): WireAnswer {
  return json(200, toWire(world, findVolume(world, id), request));
}

/** DELETE /volumes/{volumeId} */
export function deleteVolume(world: World, _request: ReferenceRequest, id: string): WireAnswer {
  const volume = findVolume(world, id);
  if (!world.rules.mayDelete(volume))
    throw new ApiError(409, 'volume_attached', 'The volume is attached to an instance.');
  volume.attachments.clear();
  volume.isDeleted = true;
  return { status: 204, headers: {} };
}

/** POST /volumes/{volumeId}/attach. Attaches all of the instances, or none. */
export async function attachVolume(world: World, request: ReferenceRequest, id: string): Promise<WireAnswer> {
  const { rules } = world;
  const volume = findVolume(world, id);
  const body = readBody(world, request);
  refuse(rules.validateAttach(body));
  const { instance_ids = [] } = body as { instance_ids?: string[] };
  const asked = rules
    .instancesToAttach(volume, instance_ids)
    .map((instanceId) => findInstance(world, instanceId));
  const isAttached = (instance: Instance) => volume.attachments.get(instance.id)?.state === 'attached';
  const refused = asked.find((instance) => !isAttached(instance) && !rules.mayAttach(volume, instance));
  if (refused !== undefined)
    throw new ApiError(409, 'invalid_state', `The instance ${refused.id} cannot have this volume now.`);
  for (const instance of asked)
    if (!isAttached(instance)) volume.attachments.set(instance.id, { state: 'attaching' });
  await proceed(world, volume);
  return json(200, toWire(world, volume, request));
}

/** Completes pending attaches if the volume and the instances are ready. */
async function proceed(world: World, volume: Volume): Promise<void> {
  if (!volume.isCreated) return;
  for (const [id, { state }] of volume.attachments) {
    const instance = world.instances.get(id);
    if (state !== 'attaching' || instance === undefined) continue;
    const isCycled = instance.status === 'ONLINE' && world.rules.needsCycle(volume, instance);
    if (isCycled) await cycle(world, instance);
    else settleAttachments(world, instance);
  }
}

/** POST /volumes/{volumeId}/detach. Instances that are not attached are ignored. */
export async function detachVolume(world: World, request: ReferenceRequest, id: string): Promise<WireAnswer> {
  const { rules, clock, options } = world;
  const volume = findVolume(world, id);
  const body = request.text === '' ? {} : readBody(world, request);
  refuse(rules.validateDetach(body));
  const { instance_ids } = body as { instance_ids?: string[] };
  for (const instanceId of rules.instancesToDetach(volume, instance_ids)) {
    const attachment = volume.attachments.get(instanceId);
    if (attachment === undefined || attachment.state === 'detaching') continue;
    const detachMs = attachment.state === 'attached' ? rules.detachMs(volume, instanceId) : 0;
    attachment.state = 'detaching';
    const instance = world.instances.get(instanceId);
    if (options.detach === 'cold' && instance?.status === 'ONLINE') {
      await cycle(world, instance);
      continue;
    }
    const end = () => {
      if (volume.attachments.get(instanceId) === attachment) volume.attachments.delete(instanceId);
    };
    if (detachMs === 0) end();
    else clock.after(detachMs, end);
  }
  return json(200, toWire(world, volume, request));
}

/** @throws {ApiError} 404 */
function findVolume({ rules, volumes }: World, id: string): Volume {
  const volume = volumes.get(id);
  if (volume === undefined || rules.isVolumeGone(volume)) throw notFound('volume');
  return volume;
}

function toWire(
  { rules, options }: World,
  volume: Volume,
  request: ReferenceRequest,
): Record<string, unknown> {
  const shown = {
    id: volume.id,
    name: volume.name,
    size_gb: volume.sizeGb,
    region: volume.region,
    status: rules.volumeStatus(volume),
    ...(options.optionalFields && {
      type: volume.type,
      attached_instance_ids: rules.attachedInstanceIds(volume),
      price_per_hour: Number((volume.sizeGb * PRICE_PER_GB_HOUR).toFixed(6)),
      created_at: rules.timestamp(volume.createdAtMs),
    }),
  };
  return rules.showVolume(volume, shown, request);
}
