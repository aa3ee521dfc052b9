import { activeStatuses } from '../contract/deployment.ts';
import { cleanUp } from './cleanup.ts';
import type { SyncContext } from './context.ts';
import { findLaunched } from './find-launched.ts';
import { launch } from './launch.ts';
import { poll } from './poll.ts';

/** Runs the next step. Returns the pause until the following one in milliseconds; null: nothing is left to do. */
export async function syncDeployment(context: SyncContext, id: string): Promise<number | null> {
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
      return poll(context, record);
    case 'over':
      return null;
  }
}
