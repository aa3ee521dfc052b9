import type { Reader } from '../orchestrator/model/store.ts';
import { findInstances } from '../orchestrator/operate/views/instances.ts';
import { Fatal } from '../ports/errors.ts';

/**
 * The id of the instance that a person means with its id or its name. Of what is not found, the text as it is: an instance that is
 * long destroyed has a history under its id.
 *
 * @throws {Fatal} with the candidates, where several have this name
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
