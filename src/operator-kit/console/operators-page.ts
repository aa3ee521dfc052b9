import type { OperatorKeyReader } from '../model.ts';
import { listOperatorKeys, type OperatorKeyView } from '../views/keys.ts';
import type { Page } from './deps.ts';
import { type Column, html, live, table } from './parts.ts';

/** The keys of operators. They are created on the command line, which shows each once. */
export const operatorsPage: Page<{ store: { read: { operatorKeys: OperatorKeyReader } } }> = async (
  { store: { read } },
  { now },
) => ({
  title: 'Operators',
  body: html`<h1>Operators’ keys</h1>
${live('operators', table(operatorKeyColumns, await listOperatorKeys(read), 'No keys yet.', now))}`,
});

const operatorKeyColumns: readonly Column<OperatorKeyView>[] = [
  'state',
  'name',
  'key',
  'created_at',
  'last_used_at',
  'revoked_at',
];
