import type { OperatorKeyReader } from '../model.ts';
import { listOperatorKeys, type OperatorKeyView } from '../views/keys.ts';
import type { Page } from './deps.ts';
import { ago, badge, type Column, html, live, named, table } from './parts.ts';

/** The keys of operators. They are created on the command line, which shows each once. */
export const operatorsPage: Page<{ store: { read: { operatorKeys: OperatorKeyReader } } }> = async (
  { store: { read } },
  { now },
) => ({
  title: 'Operators',
  body: html`<h1>Operators’ keys</h1>
${live('operators', table(operatorKeyColumns(now), await listOperatorKeys(read), 'No keys yet.'))}`,
});

export function operatorKeyColumns(now: number): readonly Column<OperatorKeyView>[] {
  return [
    { head: 'State', cell: ({ state }) => badge(state, state === 'valid' ? 'good' : 'none') },
    { head: 'Operator', cell: ({ name }) => named(name) },
    { head: 'Key', cell: ({ key }) => html`<code>${key}</code>` },
    { head: 'Created', cell: ({ created_at }) => ago(created_at, now) },
    { head: 'Last used', cell: ({ last_used_at }) => ago(last_used_at, now) || 'never' },
    { head: 'Revoked', cell: ({ revoked_at }) => ago(revoked_at, now) },
  ];
}
