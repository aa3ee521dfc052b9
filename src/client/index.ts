/** The client library: calls one orchestrator that implements the contract, and validates each answer. */
export type { Configuration } from '../contract/configuration.ts';
export type { RestartStatus, VolumeUsage } from '../contract/extensions.ts';
export type { CreateInstanceRequest, Instance } from '../contract/instance.ts';
export type { CreateVolumeRequest, Volume, VolumeLocation } from '../contract/volume.ts';
export type { Clock, Timer } from '../ports/clock.ts';
export { systemClock } from '../runtime/system.ts';
export { type ClientOptions, createClient } from './create-client.ts';
export type { Credential } from './credential.ts';
export {
  type CallOptions,
  type Identified,
  type OrchestratorClient,
  ProviderError,
  type ProviderProblem,
} from './orchestrator-client.ts';
