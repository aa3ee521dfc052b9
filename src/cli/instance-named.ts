import type { Reader } from '../orchestrator/model/store.ts';
import { findInstances } from '../orchestrator/operate/views/instances.ts';
import { Fatal } from '../ports/errors.ts';

/**
 * Finds the id of an instance by its id or name. An unknown text is returned unchanged: an instance that was destroyed
 * long ago still has a history under its id.
 * @throws {Fatal} with the candidates, if several have this name
 */
export async function instanceNamed(
  read: Pick<Reader, 'instances' | 'credentials'>,
  idOrName: string,
): Promise<string> {
  const [first, ...others] = await findInstances(read, idOrName);
  if (first === undefined) return idOrName;
  if (others.length === 0) return first.id;
  const candidates = [first, ...others].map(
    ({ id, status, account, region }) => `${id} (${status}, account ${account}, ${region})`,
  );
  throw new Fatal(
    `${candidates.length} instances are named ${idOrName}: ${candidates.join(', ')}. Give the id of the one that you mean.`,
  );
}
