import { Command } from 'commander';
import { audited } from '../operator-kit/audit.ts';
import { createOperatorKey, revokeOperatorKey } from '../operator-kit/keys.ts';
import type {
  AuditReader,
  AuditWriter,
  OperatorKeyReader,
  OperatorKeyWriter,
} from '../operator-kit/model.ts';
import { listOperatorKeys, type OperatorKeyView } from '../operator-kit/views/keys.ts';
import type { Clock, Random } from '../ports/clock.ts';
import type { Body } from './database.ts';
import { printKey, printRevoked } from './keys.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import {
  fieldColumns,
  type ListFlags,
  type OutputFlag,
  printRecords,
  withList,
  withOutput,
} from './print-records.ts';

interface OperatorsStore {
  read: { operatorKeys: OperatorKeyReader; audit: AuditReader };
  transact<T>(body: (tx: { operatorKeys: OperatorKeyWriter; audit: AuditWriter }) => Promise<T>): Promise<T>;
}

/** Runs a body on the database of a product. */
export type OnOperators = <Args extends unknown[]>(
  command: Command,
  body: Body<{ store: OperatorsStore; clock: Clock; random: Random }, Args>,
) => Command;

export function operatorsCommand(): Command {
  return operatorsCommandOn(onDatabase, 'berth operators');
}

/** Manages the keys of the admin listener's API and console, for the product whose database `on` opens. */
export function operatorsCommandOn(on: OnOperators, name: string): Command {
  const operators = new Command('operators');
  withOutput(
    on(operators.command('create <name>'), async (deps, operator: string, flags: OutputFlag) => {
      const action = { action: 'operator_key.create', subject: operator };
      const { key, record } = await audited(deps, localActor(), action, (store) =>
        createOperatorKey({ ...deps, store }, operator),
      );
      printKey(flags, { id: record.id, operator_key: key }, key, `key ${record.id} of ${operator}`);
    }),
  ).description('create a key of an operator and print it; it is shown only this once');
  withList(
    on(operators.command('ls'), async ({ store: { read } }, flags: ListFlags) => {
      const none = `There is no key of an operator: see \`${name} create\`.`;
      printRecords(await listOperatorKeys(read), columns, flags, none);
    }),
  ).description('list the keys of operators');
  withOutput(
    on(operators.command('revoke <id>'), async (deps, id: string, flags: OutputFlag) => {
      const action = { action: 'operator_key.revoke', subject: id };
      const { revokedAt } = await audited(deps, localActor(), action, (store) =>
        revokeOperatorKey({ ...deps, store, command: name }, id),
      );
      printRevoked(flags, id, revokedAt);
    }),
  ).description('end a key of an operator at once, with every session of the console that it began');
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
