import { endAttachments, settleAttachments } from './attachments.ts';
import type { Instance, InstanceStatus } from './model.ts';
import type { World } from './world.ts';

/** PROVISIONING → ONLINE, never before the create has been answered. */
export function boot(world: World, instance: Instance): void {
  const { clock, rules } = world;
  instance.cancel = clock.after(rules.bootMs(instance), () => {
    void clock.during(become(world, instance, 'ONLINE'));
  });
}

/** ONLINE → STOPPING → STOPPED. */
export async function stop(world: World, instance: Instance): Promise<void> {
  await become(world, instance, 'STOPPING');
  await later(world, instance, world.rules.stopMs(instance), () => become(world, instance, 'STOPPED'));
}

/** STOPPED → ONLINE. */
export function start(world: World, instance: Instance): Promise<void> {
  const { rules } = world;
  instance.isStarting = true;
  return later(world, instance, rules.startMs(instance), () => {
    instance.disk = rules.diskAfterStart(instance, instance.disk);
    return become(world, instance, 'ONLINE');
  });
}

/** ONLINE → STOPPING → STOPPED → ONLINE, for changes that require the machine to be off. */
export async function cycle(world: World, instance: Instance): Promise<void> {
  await become(world, instance, 'STOPPING');
  await later(world, instance, world.rules.stopMs(instance), async () => {
    await become(world, instance, 'STOPPED');
    await start(world, instance);
  });
}

/** Any live state → DESTROYING → DESTROYED. */
export async function destroy(world: World, instance: Instance): Promise<void> {
  await become(world, instance, 'DESTROYING');
  await later(world, instance, world.rules.destroyMs(instance), () => become(world, instance, 'DESTROYED'));
}

/** Replaces the pending step by `step`. */
function later(world: World, instance: Instance, ms: number, step: () => Promise<void>): Promise<void> {
  const { clock } = world;
  instance.cancel();
  if (ms === 0) return step();
  instance.cancel = clock.after(ms, () => void clock.during(step()));
  return Promise.resolve();
}

/**
 * Sets the next status. A status with SSH is set once SSH listens, any other at once. Time is held meanwhile, so
 * nothing else can happen in between.
 */
async function become(world: World, instance: Instance, next: InstanceStatus): Promise<void> {
  const { clock, rules } = world;
  const { endpoint } = instance;
  const status = rules.statusAfter(instance, next);
  if (rules.sshListens(instance, status)) {
    await clock.during(endpoint.open(rules.portAfterStart(instance, endpoint.port)));
    enter(world, instance, status);
    return;
  }
  // Reserves a port that then refuses connections.
  if (status === 'ONLINE' && endpoint.port === 0) await clock.during(endpoint.open(0));
  enter(world, instance, status);
  await clock.during(endpoint.close());
}

function enter(world: World, instance: Instance, status: InstanceStatus): void {
  const { clock, rules } = world;
  instance.status = status;
  instance.isStarting = false;
  instance.updatedAtMs = rules.updatedAt(instance, clock.wall());
  if (status === 'ERROR') {
    const error = rules.errorText(instance);
    if (error !== undefined) instance.error = error;
  }
  settleAttachments(world, instance);
  if (status !== 'DESTROYED') return;
  instance.destroyedAtMs = clock.now();
  rules.releaseCapacity(instance.offer, instance.region);
  endAttachments(world, instance);
}
