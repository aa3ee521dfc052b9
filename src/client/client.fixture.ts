import { expect, onTestFinished } from 'vitest';
import { systemClock } from '../runtime/system.ts';
import { type ClientOptions, createClient } from './create-client.ts';
import { type OrchestratorClient, ProviderError } from './orchestrator-client.ts';

export const KEY = 'sk-live-0123456789';

export function clientOf(baseUrl: string, options: Partial<ClientOptions> = {}): OrchestratorClient {
  const client = createClient({
    baseUrl,
    credential: { apiKey: KEY },
    allowPrivate: true,
    timeoutMs: 60_000,
    clock: systemClock,
    ...options,
  });
  onTestFinished(() => client.close());
  return client;
}

export async function problemOf(call: Promise<unknown>): Promise<ProviderError> {
  const outcome = await call.then(
    () => 'a success',
    (error: unknown) => error,
  );
  expect(outcome).toBeInstanceOf(ProviderError);
  return outcome as ProviderError;
}

export const read = (client: OrchestratorClient) => client.getInstance('i-1', 'eu-frankfurt');
export const write = (client: OrchestratorClient) =>
  client.createInstance(
    { configuration_id: 'h100-1x', region: 'eu-frankfurt', ssh_keys: ['ssh-ed25519 AAAA'] },
    'dep-1',
  );
