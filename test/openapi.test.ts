import { expect, it } from 'vitest';
import { startTestMarketplace } from './support/marketplace.ts';
import { startTestOrchestrator } from './support/orchestrator.ts';

it('serves the OpenAPI document that is committed (npm run generate writes it anew)', async () => {
  await using orchestrator = await startTestOrchestrator();
  const served = await orchestrator.fetch('/openapi.json');
  await expect(`${JSON.stringify(await served.json(), null, 2)}\n`).toMatchFileSnapshot(
    '../openapi/orchestrator.v1.json',
  );
});

it("serves the OpenAPI document of the operator's API that is committed [operator-openapi]", async () => {
  await using orchestrator = await startTestOrchestrator();
  const served = await orchestrator.admin.fetch('/operator/openapi.json');
  await expect(`${JSON.stringify(await served.json(), null, 2)}\n`).toMatchFileSnapshot(
    '../openapi/operator.v1.json',
  );
});

it("serves the OpenAPI document of the marketplace operator's API that is committed", async () => {
  await using market = await startTestMarketplace({ hasOperators: true });
  const served = await market.admin.fetch('/operator/openapi.json');
  await expect(`${JSON.stringify(await served.json(), null, 2)}\n`).toMatchFileSnapshot(
    '../openapi/marketplace-operator.v1.json',
  );
});

it('serves the OpenAPI document of the marketplace that is committed [marketplace-openapi]', async () => {
  await using market = await startTestMarketplace();
  const served = await market.fetch('/openapi.json');
  await expect(`${JSON.stringify(await served.json(), null, 2)}\n`).toMatchFileSnapshot(
    '../openapi/marketplace.json',
  );
});
