import { hold } from '../../kernel/violation.ts';

/** I40: nothing that is named after a resource is left on any host after its end. */
export function nothingIsLeftOf(id: string, traces: readonly string[]): void {
  hold('I40', traces.length === 0, () => `${id} has ended, and left ${traces.join(', ')}`, [id]);
}
