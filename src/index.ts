/**
 * Berth as a library: its servers, assembled from a configuration and optionally the program's own clock, store and
 * other ports. `serve…` listens and opens what the configuration names. `start…` is given all of it, and also answers
 * in process through `app.request()`.
 */

export {
  type Marketplace,
  type MarketplaceDeps,
  startMarketplace,
} from './compose/marketplace/marketplace.ts';
export {
  type Orchestrator,
  type OrchestratorDeps,
  startOrchestrator,
} from './compose/orchestrator/orchestrator.ts';
export {
  type ServeMarketplaceOptions,
  type ServingMarketplace,
  serveMarketplace,
} from './compose/serve/marketplace.ts';
export {
  type ServeOptions,
  type ServePorts,
  type Serving,
  serveOrchestrator,
} from './compose/serve/orchestrator.ts';
export type { MarketplaceStoreDeps } from './compose/stores/marketplace.ts';
export { openMarketplaceStore } from './compose/stores/marketplace.ts';
export { openStore, type StoreDeps } from './compose/stores/orchestrator.ts';
export { ConfigError } from './config/findings.ts';
export { loadCatalog, loadConfig } from './config/load.ts';
export { loadMarketplaceConfig } from './config/marketplace/load.ts';
export type { MarketplaceConfig } from './config/marketplace/schema.ts';
export type { Config } from './config/schema.ts';
export { Fatal } from './ports/errors.ts';
export { systemClock, systemRandom } from './runtime/system.ts';
