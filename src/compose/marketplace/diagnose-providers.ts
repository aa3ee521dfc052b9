import {
  type OrchestratorClient,
  ProviderError,
  type ProviderProblem,
} from '../../client/orchestrator-client.ts';
import type { MarketplaceConfig } from '../../config/marketplace/schema.ts';
import type { Environment } from '../../config/settings.ts';
import { counted } from '../../contract/counted.ts';
import { sideBySide } from '../../drivers/kit/asking.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import { publishedOffers } from '../../marketplace/providers/read-catalog.ts';
import type { Clock } from '../../ports/clock.ts';
import { broken, type Diagnosis, ok } from '../../ports/diagnosis.ts';
import type { Log } from '../../ports/log.ts';
import { guarded } from '../doctor/guarded.ts';
import { createClients } from './providers.ts';

/** Longer than the time limit of a call, so that the client can report the cause. */
const answerMs = defaultOptions.polling.callTimeoutMs + 1_000;
const CALLS = 3;

interface Parts {
  env: Environment;
  clock: Clock;
  log: Log;
}

/** Calls each provider of marketplace.yaml, and reports what fails and what cannot be read or sold. Changes nothing. */
export async function* diagnoseProviders(config: MarketplaceConfig, parts: Parts): AsyncGenerator<Diagnosis> {
  const { clock } = parts;
  const unread = new Map<string, string[]>();
  const clients = createClients(config, {
    ...parts,
    onProblem: (id, { call, message }) => unread.set(id, [...(unread.get(id) ?? []), `${call}: ${message}`]),
  });
  const checks = clients.map(({ profile: { id }, client }) => {
    const subject = `provider ${id}`;
    const within = { clock, over: new AbortController(), answerMs, endsAt: clock.now() + CALLS * answerMs };
    return guarded(
      subject,
      within,
      diagnoseProvider(subject, client, () => unread.get(id) ?? []),
    );
  });
  yield* sideBySide(checks);
}

/** The catalog alone does not prove the key: a provider may show it to any key. */
async function* diagnoseProvider(
  subject: string,
  client: OrchestratorClient,
  unread: () => readonly string[],
): AsyncGenerator<Diagnosis> {
  try {
    const configurations = await client.listConfigurations();
    yield ok(subject, `its catalog has ${counted(configurations.length, 'offer')}`);
    const available = await client.listAvailability();
    yield ok(subject, `${counted(available.length, 'offer')} can be deployed now`);
    const instances = await client.listInstances();
    yield ok(subject, `it accepts the key, which has ${counted(instances.length, 'instance')}`);
    const leftOut: string[] = [];
    publishedOffers({ configurations, available }, (problem) => leftOut.push(problem));
    for (const problem of [...unread(), ...leftOut]) yield broken(subject, problem, INCORRECT);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    yield broken(subject, error.message, remedies[error.problem] ?? OTHER);
  } finally {
    await client.close();
  }
}

const INCORRECT = 'Have the provider correct it. The rest of its list is used.';
const OTHER = 'Send the provider this line.';
const remedies: Partial<Record<ProviderProblem, string>> = {
  unauthorized: 'Get a new key of the provider, and restart the marketplace with it.',
  unreachable: 'Check base_url, its name and its TLS certificate, and that this machine may connect to it.',
  timeout: 'Check that this machine reaches the provider, and ask whether it is overloaded.',
  limited: 'Ask the provider for a higher limit.',
};
