import type { InstanceRecord } from '../model/instance-record.ts';
import type { InstanceReader } from '../model/store.ts';

/** Instances that are read at once: some hundred KB of them. */
export const INSTANCES_PER_PAGE = 500;

/**
 * O: GET /instances, page by page: oldest first, without the destroyed ones; an unknown region is an empty list
 * (settled). What is there from the first page to the last is in it once, whatever is made or destroyed meanwhile: the
 * next page begins after the last instance of the one before, and neither its age nor its id ever changes.
 */
export async function* listInstances(
  instances: InstanceReader,
  accountId: string,
  region?: string,
): AsyncGenerator<InstanceRecord[], void> {
  let after: InstanceRecord | undefined;
  do {
    const page = await instances.page({
      accountId,
      limit: INSTANCES_PER_PAGE,
      ...(region !== undefined && { region }),
      ...(after !== undefined && { after }),
    });
    yield page;
    after = page.length < INSTANCES_PER_PAGE ? undefined : page.at(-1);
  } while (after !== undefined);
}
