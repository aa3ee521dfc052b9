import { type Asked, assertAdmin, found, ok, Refusal, type Reply, type Route } from './api.ts';
import { type Cloud, capacityOf } from './cloud.ts';
import type { Compute } from './compute.ts';
import { aggregateOf } from './compute-views.ts';

/** Placement's API, for administrators. What runs a nova-compute is one provider. */
export class PlacementApi {
  readonly routes: readonly Route[];
  readonly #cloud: Cloud;

  constructor(cloud: Cloud) {
    this.#cloud = cloud;
    const of =
      (show: (compute: Compute) => object): Route[2] =>
      (asked, id) => {
        assertAdmin(asked);
        const compute = cloud.computes.find((one) => one.id === id);
        const body = show(found(compute, `No resource provider with uuid ${id} found`));
        return ok({ resource_provider_generation: 1, ...body });
      };
    this.routes = [
      ['GET', 'resource_providers', (asked) => this.#list(asked)],
      ['GET', 'resource_providers/*/inventories', of((compute) => ({ inventories: inventoriesOf(compute) }))],
      ['GET', 'resource_providers/*/usages', of((compute) => ({ usages: this.#usages(compute) }))],
      ['GET', 'resource_providers/*/traits', of(({ traits }) => ({ traits }))],
      ['GET', 'resource_providers/*/aggregates', of(({ zone }) => ({ aggregates: aggregatesOf(zone) }))],
      [
        'GET',
        'resource_providers/*/allocations',
        of((compute) => ({ allocations: this.#allocations(compute) })),
      ],
      ['GET', 'allocation_candidates', (asked) => this.#candidates(asked)],
      ['GET', 'allocations/*', (asked, id) => this.#allocation(asked, id)],
    ];
  }

  #list(asked: Asked): Reply {
    assertAdmin(asked);
    const name = asked.query.get('name');
    const shown = this.#matching(asked).filter((one) => name === null || one.name === name);
    return ok({
      resource_providers: shown.map(({ id, name }) => ({
        ...{ uuid: id, name, generation: 1, parent_provider_uuid: null, root_provider_uuid: id, links: [] },
      })),
    });
  }

  /** Those that have the traits, are in the aggregates, and have room for the resources. */
  #matching({ query }: Asked): Compute[] {
    const required = query.get('required')?.split(',') ?? [];
    const groups = query.getAll('member_of').map((text) => text.replace(/^in:/, '').split(','));
    const resources = resourcesOf(query.get('resources'));
    return this.#cloud.computes.filter(
      (one) =>
        required.every((trait) =>
          trait.startsWith('!') ? !one.traits.includes(trait.slice(1)) : one.traits.includes(trait),
        ) &&
        groups.every((group) => aggregatesOf(one.zone).some((id) => group.includes(id))) &&
        this.#cloud.fits(one, resources) &&
        // nova-compute gives this trait to what an operator has disabled.
        !(one.isDisabled && required.includes('!COMPUTE_STATUS_DISABLED')),
    );
  }

  #candidates(asked: Asked): Reply {
    assertAdmin(asked);
    const text = asked.query.get('resources');
    if (text === null) throw new Refusal(400, 'Invalid query string parameters: no resources');
    const most = Number(asked.query.get('limit') ?? Number.MAX_SAFE_INTEGER);
    const able = this.#matching(asked).slice(0, most);
    const resources = resourcesOf(text);
    const summary = (compute: Compute): object => ({
      resources: Object.fromEntries(
        Object.entries(compute.inventories).map(([name, inventory]) => [
          name,
          { capacity: capacityOf(inventory), used: this.#cloud.used(compute, name) },
        ]),
      ),
      ...{ traits: compute.traits, parent_provider_uuid: null, root_provider_uuid: compute.id },
    });
    return ok({
      allocation_requests: able.map(({ id }) => ({
        allocations: { [id]: { resources } },
        mappings: { '': [id] },
      })),
      provider_summaries: Object.fromEntries(able.map((one) => [one.id, summary(one)])),
    });
  }

  #usages(compute: Compute): object {
    return Object.fromEntries(
      Object.keys(compute.inventories).map((name) => [name, this.#cloud.used(compute, name)]),
    );
  }

  #allocations(compute: Compute): object {
    const own = [...this.#cloud.allocations].filter(([, one]) => one.compute === compute);
    return Object.fromEntries(own.map(([consumer, { resources }]) => [consumer, { resources }]));
  }

  #allocation(asked: Asked, id: string): Reply {
    assertAdmin(asked);
    const allocation = this.#cloud.allocations.get(id);
    if (allocation === undefined) return ok({ allocations: {} });
    const { compute, resources } = allocation;
    return ok({ allocations: { [compute.id]: { generation: 1, resources } }, consumer_generation: 1 });
  }
}

const aggregatesOf = (zone: string): string[] => (zone === 'nova' ? [] : [aggregateOf(zone)]);

/** `VCPU:2,MEMORY_MB:2048`. */
function resourcesOf(text: string | null): Record<string, number> {
  const parts = (text ?? '').split(',').filter((part) => part !== '');
  return Object.fromEntries(parts.map((part) => [part.split(':')[0] ?? '', Number(part.split(':')[1])]));
}

function inventoriesOf({ inventories }: Compute): object {
  return Object.fromEntries(
    Object.entries(inventories).map(([name, { total, reserved, allocationRatio }]) => [
      name,
      { total, reserved, min_unit: 1, max_unit: total, step_size: 1, allocation_ratio: allocationRatio },
    ]),
  );
}
