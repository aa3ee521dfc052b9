import { Command } from 'commander';
import { audited } from '../operators/audit.ts';
import { createOperatorKey, revokeOperatorKey } from '../operators/keys.ts';
import { listOperatorKeys, type OperatorKeyView } from '../operators/views/keys.ts';
import { printLine } from '../runtime/print.ts';
import { printRevoked } from './keys.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { fieldColumns, type JsonFlag, printJson, printRecords, withJson } from './print-records.ts';

/** `berth operators`: the keys of the admin listener's API and console. */
export function operatorsCommand(): Command {
  const operators = new Command('operators');
  withJson(
    onDatabase(operators.command('create <name>'), async (deps, name: string, { json }: JsonFlag) => {
      const action = { action: 'operator_key.create', subject: name };
      const { key, record } = await audited(deps, localActor(), action, (store) =>
        createOperatorKey({ ...deps, store }, name),
      );
      if (json) printJson({ id: record.id, operator_key: key });
      else printLine(`${key}\n\nThis is key ${record.id} of ${name}. Keep it now: it is not shown again.`);
    }),
  ).description('create a key of an operator and print it; it is shown only this once');
  withJson(
    onDatabase(operators.command('list'), async ({ store: { read } }, flags: JsonFlag) => {
      const none = 'There is no key of an operator: see `berth operators create`.';
      printRecords(await listOperatorKeys(read), columns, flags, none);
    }),
  ).description('list the keys of operators');
  onDatabase(operators.command('revoke <id>'), async (deps, id: string) => {
    const action = { action: 'operator_key.revoke', subject: id };
    const { revokedAt } = await audited(deps, localActor(), action, (store) =>
      revokeOperatorKey({ ...deps, store }, id),
    );
    printRevoked(id, revokedAt);
  }).description('end a key of an operator at once, with every session of the console that it began');
  return operators;
}

const columns = fieldColumns<OperatorKeyView>({
  ID: 'id',
  NAME: 'name',
  KEY: 'key',
  STATE: 'state',
  CREATED: 'created_at',
  REVOKED: 'revoked_at',
  'LAST USED': 'last_used_at',
});
