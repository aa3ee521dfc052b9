import type { Provider } from '../providers/provider.ts';
import { advanceQuietly } from './advance.ts';
import type { VolumeDeps } from './deps.ts';
import { toSeller, type VolumeSeller } from './seller.ts';

const AT_THE_SAME_TIME = 8;

/**
 * Goes on with all that is unfinished about the volumes of a provider: creates, attachments on their way, resizes,
 * deletions that are not proved. One that fails does not hold up the others.
 */
export async function tendVolumes(deps: VolumeDeps, provider: Provider): Promise<void> {
  const seller = toSeller(provider);
  if (seller === null) return;
  const ids = (await deps.store.read.volumes.toTend(provider.id)).map(({ id }) => id);
  for (let from = 0; from < ids.length; from += AT_THE_SAME_TIME)
    await Promise.all(ids.slice(from, from + AT_THE_SAME_TIME).map((id) => tend(deps, seller, id)));
}

async function tend(deps: VolumeDeps, seller: VolumeSeller, id: string): Promise<void> {
  try {
    await advanceQuietly(deps, seller, id);
  } catch (error) {
    deps.log.error({ volume: id, err: error }, 'a volume could not be looked after; it is tried again');
  }
}
