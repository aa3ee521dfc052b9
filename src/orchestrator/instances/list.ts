import { nextTurn } from '../../ports/clock.ts';
import type { InstanceReader, ListedInstance, LiveInstance } from '../model/store.ts';

/** Instances read at once: some hundred KB. */
const INSTANCES_PER_PAGE = 500;

interface ListPage {
  /** Instances as JSON. */
  items: readonly string[];
  isLast: boolean;
}

/**
 * O: GET /instances, page by page: oldest first, without destroyed ones. An unknown region gives an empty list. An
 * instance that exists throughout is listed exactly once, since each page begins after the previous one by creation
 * time and id. `prepare` returns the bodies of a page in order, without instances destroyed meanwhile.
 */
export async function* listInstances(
  instances: InstanceReader,
  prepare: (ids: readonly string[]) => Promise<string[]>,
  accountId: string,
  region?: string,
): AsyncGenerator<ListPage, void> {
  let after: ListedInstance | undefined;
  do {
    const page = await instances.page({ accountId, limit: INSTANCES_PER_PAGE, region, after });
    after = page.length < INSTANCES_PER_PAGE ? undefined : page.at(-1);
    yield { items: await prepare(page.map(({ id }) => id)), isLast: after === undefined };
  } while (after !== undefined);
}

const LIVE_PER_PAGE = 1_000;

/** All instances that are not destroyed. They are read page by page to limit memory. */
export async function* eachLiveInstance(
  instances: Pick<InstanceReader, 'livePage'>,
  limit = LIVE_PER_PAGE,
): AsyncGenerator<LiveInstance, void> {
  let after: LiveInstance | undefined;
  do {
    const page = await instances.livePage({ limit, after });
    yield* page;
    after = page.length < limit ? undefined : page.at(-1);
    if (after !== undefined) await nextTurn();
  } while (after !== undefined);
}
