import type { Actor } from '../../src/operator-kit/model.ts';
import type { startPlainOrchestrator } from '../support/plain-orchestrator.ts';

export const actor: Actor = { name: 'ann', source: 'cli', address: null };

export const audited = async ({
  orchestrator: { store },
}: Awaited<ReturnType<typeof startPlainOrchestrator>>) => {
  const entries = await store.read.audit.page({ limit: 20 });
  return entries.map(({ action, outcome }) => `${action} ${outcome}`);
};
