import { activeStatuses } from '../contract/deployment.ts';
import { cleanUp } from './cleanup.ts';
import type { SyncContext } from './context.ts';
import { findLaunched } from './find-launched.ts';
import { launch } from './launch.ts';
import { ask, confirmAgain, type PollAnswer, poll } from './poll.ts';

/** Runs the next step. Returns the pause until the following one in milliseconds; null: nothing is left to do. */
export async function syncDeployment(context: SyncContext, id: string): Promise<number | null> {
  const last = context.answers.take(id);
  if (last === undefined) return syncByRow(context, id);
  const answered = await ask(context, last, last.mark);
  if (answered.answer === 'unchanged') {
    context.answers.putBack(id, last);
    return confirmAgain(context, id, answered);
  }
  // A different answer is judged by the last confirmation, which must therefore be written first.
  await context.observations.flush(id);
  return syncByRow(context, id, answered);
}

async function syncByRow(context: SyncContext, id: string, answered?: PollAnswer): Promise<number | null> {
  const record = await context.store.read.deployments.byId(id);
  if (record === null) return null;
  if (!activeStatuses.includes(record.status))
    return record.cleanup === 'wanted' ? cleanUp(context, record) : null;
  switch (record.launch.state) {
    case 'wanted':
      return launch(context, record);
    case 'sent':
      return findLaunched(context, record);
    case 'made':
      // An answer to a request sent before the row changed says nothing about the new row.
      if (answered?.revision === record.revision) return poll(context, record, answered);
      return poll(context, record, await ask(context, record, null));
    case 'over':
      return null;
  }
}
