import type { Exchange } from '../transcript/records.ts';
import { idOf, jsonOf, objectsField, textField } from '../wire/json.ts';
import { type Ledger, prefixOf } from './ledger.ts';

/**
 * Takes up what a list shows that the target made of a request that it had refused, or after the ledger ended: nobody but
 * the run can have named it so.
 */
export function adoptStrays(ledger: Ledger, runId: string, list: Exchange): void {
  const instances = objectsField(jsonOf(list), 'instances');
  const known = new Set(ledger.entries.map(({ id }) => id));
  const awaited = ledger.open.filter(({ id }) => id === undefined);
  for (const instance of instances) {
    const [id, name = ''] = [idOf(instance), textField(instance, 'name')];
    if (id === undefined || known.has(id) || !name.startsWith(prefixOf(runId))) continue;
    if (instance['status'] === 'DESTROYED' || awaited.some((entry) => name.startsWith(entry.name))) continue;
    const region = textField(instance, 'region');
    const stray = {
      type: 'instance',
      step: list.step,
      name,
      ...(region === undefined ? {} : { region }),
    } as const;
    ledger.made(ledger.intend(stray), id);
  }
}
