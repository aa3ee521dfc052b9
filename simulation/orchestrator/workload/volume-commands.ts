import type { WorkloadWorld } from './clients.ts';
import type { Tenant } from './tenant.ts';

/** Sends a command about a volume. */
export async function volumeCommand(
  world: WorkloadWorld,
  tenant: Tenant,
  what:
    | 'createVolume'
    | 'pollVolume'
    | 'attach'
    | 'detach'
    | 'resizeVolume'
    | 'destroyVolume'
    | 'createThenDeleteVolume',
): Promise<void> {
  const { clients } = world;
  const { chance } = clients;
  if (what === 'createVolume' || what === 'createThenDeleteVolume') {
    const id = await createVolume(world, tenant);
    if (id !== undefined && what === 'createThenDeleteVolume') await deleteSoon(world, tenant, id);
    return;
  }
  if (tenant.volumes.length === 0) return;
  const id = chance.pick(tenant.volumes.slice(-6));
  const path = `/v1/volumes/${id}`;
  const [instance] = tenant.instances.length === 0 ? [] : [chance.pick(tenant.instances.slice(-8))];
  switch (what) {
    case 'pollVolume':
      await clients.ask(tenant, { method: 'GET', path });
      return;
    case 'attach':
      if (instance !== undefined)
        await clients.ask(tenant, {
          method: 'POST',
          path: `${path}/attach`,
          body: { instance_ids: [instance] },
        });
      return;
    case 'detach':
      await clients.ask(tenant, { method: 'POST', path: `${path}/detach`, body: {} });
      return;
    case 'resizeVolume': {
      // Volumes are made with 20 GB; clients also ask for a size that a volume has or had.
      const body = { size_gb: chance.pick([15, 20, 25, 30, 30, 40, 60]) };
      await clients.ask(tenant, { method: 'POST', path: `/v1/x/volumes/${id}/resize`, body });
      return;
    }
    case 'destroyVolume':
      tenant.deleteSent.add(id);
      await clients.ask(tenant, { method: 'DELETE', path });
      return;
  }
}

async function createVolume(world: WorkloadWorld, tenant: Tenant): Promise<string | undefined> {
  const { clients, catalog } = world;
  const { chance } = clients;
  const region = chance.pick([...catalog.regions.keys()]);
  const body = {
    name: `${tenant.name}-v${tenant.volumes.length + 1}`,
    region,
    size_gb: 20,
    type: chance.pick(catalog.regions.get(region)?.volumeTypes ?? []).name,
  };
  const reply = await world.clients.ask(tenant, { method: 'POST', path: '/v1/volumes', body });
  if (reply?.status !== 201) return undefined;
  const { id } = reply.body as { id: string };
  tenant.learnVolume(id);
  return id;
}

/** Deletes a volume while it is being made or just after; the platform may not show it yet. */
async function deleteSoon({ clients, scheduler }: WorkloadWorld, tenant: Tenant, id: string): Promise<void> {
  await scheduler.sleep(clients.chance.between(0, 9_000));
  tenant.deleteSent.add(id);
  await clients.ask(tenant, { method: 'DELETE', path: `/v1/volumes/${id}` });
}
