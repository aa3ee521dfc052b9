import type { Command } from 'commander';
import { audited } from '../operator-kit/audit.ts';
import { completeId } from '../operator-kit/complete-id.ts';
import { createOperatorKey, revokeOperatorKey } from '../operator-kit/keys.ts';
import type { AuditWriter, OperatorKeyWriter } from '../operator-kit/model.ts';
import { toTime } from '../operator-kit/views/values.ts';
import type { Clock, Random } from '../ports/clock.ts';
import { type ConfirmFlags, isConfirmed, withConfirm } from './confirm.ts';
import type { Body } from './database.ts';
import { localActor } from './local-actor.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

interface OperatorsStore {
  transact<T>(body: (tx: { operatorKeys: OperatorKeyWriter; audit: AuditWriter }) => Promise<T>): Promise<T>;
}

type RevokeFlags = OutputFlag & ConfirmFlags;

/** Runs a body on the database of a product. */
type OnOperators = <Args extends unknown[]>(
  command: Command,
  body: Body<{ store: OperatorsStore; clock: Clock; random: Random }, Args>,
) => Command;

/** Adds what makes and ends keys of the admin listener's API and console. `name`: the command of the product. */
export function withOperatorKeys(operators: Command, on: OnOperators, name: string): Command {
  withOutput(
    on(operators.command('create <name>'), async (deps, operator: string, flags: OutputFlag) => {
      const action = { action: 'operator_key.create', subject: operator };
      const { key, record } = await audited(deps, localActor(), action, (store) =>
        createOperatorKey({ ...deps, store }, operator),
      );
      const what = `This is key ${record.id} of ${operator}. Keep it now: it is not shown again.`;
      printDone(flags, { id: record.id, operator_key: key }, key, '', what);
    }),
  ).description('create a key of an operator and print it; it is shown only this once');
  withOutput(
    on(withConfirm(operators.command('revoke <id>')), async (deps, given: string, flags: RevokeFlags) => {
      const keys = await deps.store.transact((tx) => tx.operatorKeys.list());
      const id = completeId(
        keys.map((key) => key.id),
        given,
      );
      const plan = `Key ${id} ends at once, with every session of the console that it began.`;
      if (!(await isConfirmed(flags, () => printDone(flags, { id, done: false }, plan)))) return;
      const action = { action: 'operator_key.revoke', subject: id };
      const { revokedAt } = await audited(deps, localActor(), action, (store) =>
        revokeOperatorKey({ ...deps, store, command: name }, id),
      );
      const at = toTime(revokedAt);
      printDone(flags, { id, revoked_at: at }, `Key ${id} is revoked since ${at}.`);
    }),
  ).description('end a key of an operator at once, with every session of the console that it began');
  return operators;
}
