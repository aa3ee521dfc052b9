import { type Identified, orProviderError, ProviderError } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { isBeingDestroyed, isNamed } from '../model/names.ts';
import { removeOrphan } from './cleanup.ts';
import type { SyncContext } from './context.ts';
import { adopt, failOverdue, isOverdue } from './launch.ts';
import { fail } from './settle-action.ts';

const FIRST_SEARCHES_MS = 2_000;
const LAST_SEARCHES_MS = 10_000;

/**
 * Searches the provider's list for the instance of a create whose answer was lost. Adopts the oldest and deletes the
 * others. If none appears within `findCreateMs`, the deployment fails, and the sweep deletes one that appears later.
 * Returns the pause until the next search.
 */
export async function findLaunched(context: SyncContext, record: DeploymentRecord): Promise<number> {
  const { clock, options, provider, health, call } = context;
  const listed = await orProviderError(provider.client.listInstances(call));
  if (listed instanceof ProviderError) {
    health.failed(record, listed);
    if (isOverdue(context, record)) await failOverdue(context, record);
    return LAST_SEARCHES_MS;
  }
  health.answered(record.id);
  const found = listed.filter((instance) => isNamed(instance, record.providerName)).sort(byAge);
  const [adopted = found[0], ...others] = found.filter((instance) => !isBeingDestroyed(instance));
  if (adopted !== undefined) {
    await adopt(context, record.id, adopted);
    // A list may contain an instance twice.
    for (const other of others) if (other.id !== adopted.id) await removeOrphan(context, record, other);
    return 0;
  }
  const waitedMs = clock.now() - (record.launch.sentAt ?? record.createdAt);
  if (waitedMs >= options.polling.findCreateMs) {
    await fail(
      context,
      record,
      'provider_error',
      'The provider did not answer, and no machine was found there.',
    );
    return 0;
  }
  // The pause doubles: it is the time waited so far, in multiples of the first pause.
  const firstPauses = Math.max(1, Math.round(waitedMs / FIRST_SEARCHES_MS));
  return Math.min(LAST_SEARCHES_MS, firstPauses * FIRST_SEARCHES_MS);
}

function byAge(a: Identified<Instance>, b: Identified<Instance>): number {
  return createdAt(a) - createdAt(b) || a.id.localeCompare(b.id);
}

/** An instance whose time cannot be read counts as new. */
function createdAt({ created_at: at }: Identified<Instance>): number {
  return at === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(at);
}
