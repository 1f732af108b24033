"""The regret that the specifications of DriftTS (32 runs) and DriftLinTS (16 runs) give: mean and standard error."""

DRIFT_TS = {
    "authors-K5": (319, 5), "authors-K10": (682, 21), "authors-K30": (858, 10),
    "fresh-K5-p5": (339, 27), "fresh-K5-p10": (501, 32), "fresh-K5-p20": (828, 32),
    "fresh-K10": (658, 26), "fresh-K30": (1031, 30),
    "gap.05-K5": (1208, 52), "gap.1-K2": (180, 9), "gap.2-K5": (345, 7),
    "smooth-K5-short": (377, 9), "smooth-K5-short-slow": (151, 13), "smooth-K5": (980, 34),
    "smooth-K10": (1892, 41), "smooth-K30-quick": (8171, 32), "smooth-K30": (3082, 28),
    "stat-K5": (99, 8), "stat-K10": (125, 7), "stat-K30": (216, 13),
    "fast-K5": (3912, 42), "fast-K10": (5565, 38), "slow-K5": (447, 29),
    "trap-K2": (572, 83), "trap-K5": (1163, 124), "local-K5": (1367, 39),
    "common.0": (225, 16), "common.1": (263, 12), "common.2": (308, 25),
}  # fmt: skip

DRIFT_LIN_TS = {
    "abrupt-K5-g.1": (117.0, 31.5), "abrupt-K10-g1": (1354, 69.7), "smooth-K5-g.1": (244.2, 7.62),
    "smooth-K10-lat": (5303, 156.0), "stat-K5-g1": (201.3, 63.8), "stat-K10-rev": (193.5, 12.6),
    "local-K5-beta": (337.2, 62.5), "common-K5-g.1": (31.2, 4.30), "abrupt-K10-bern": (430.6, 49.2),
    "smooth-K5-scale": (612.4, 23.0), "abrupt-K5-out": (97.4, 14.4), "abrupt-K10-g.01": (229.9, 28.2),
    "abrupt-K5-lat": (2620, 194.2), "smooth-K10-gbig": (499519, 12191), "smooth-K5-bern": (644.4, 24.8),
    "stat-K10-g.1": (49.4, 3.96), "stat-K5-lat": (471.9, 63.0), "common-K5-beta": (34.7, 6.36),
    "abrupt-K10-scale": (444.3, 42.1), "abrupt-K5-beta": (119.5, 44.4), "smooth-K10-out": (616.0, 73.2),
    "abrupt-K5-rev-100k": (1447, 114.4), "local-K5-rev-100k": (1241, 179.0), "local-K5-g1-100k": (4420, 690.3),
    "trap-K5-g.1": (929, 258), "rising-K5-g1": (1129, 67), "trap-K5-rev": (567, 56),
}  # fmt: skip

DRIFT_LIN_TS_CONTEXTS = {
    "D01-rest": (80.8, 4.37), "D02-abrupt": (622.3, 16.1), "D03-local": (1481, 60.6), "D04-walk": (1069, 18.9),
    "D05-segbern": (320.8, 17.7), "D06-russac-abrupt": (269.6, 16.2), "D07-tide": (198.3, 12.4),
    "D08-useless": (403.4, 40.8), "D09-revenue": (9681, 571.9), "D10-rotation": (751.8, 14.5),
    "D11-coords": (741.5, 16.5), "D12-K20": (1744, 33.7), "D13-short": (84.0, 9.10), "H01-restbern": (113.6, 6.19),
    "H02-abrupt10": (3554, 76.2), "H03-localbern": (889.1, 44.0), "H04-walkfast": (1476, 15.9),
    "H05-segwalk": (771.6, 22.7), "H06-kimtewari": (393.8, 6.54), "H07-segtide": (561.0, 85.7),
    "H08-season": (1095, 16.5), "H09-revenuerest": (13905, 958.2), "H10-d20": (795.5, 16.5),
    "H11-lownoise": (873.8, 40.4), "H12-long": (1508, 45.5), "H13-short": (455.6, 21.7),
    "context-trap": (1224, 377), "context-rising": (385, 94),
}  # fmt: skip

BY_SUITE = {
    "binary": ("drift-ts", DRIFT_TS),
    "scale": ("drift-lin-ts", DRIFT_LIN_TS),
    "linear": ("drift-lin-ts", DRIFT_LIN_TS_CONTEXTS),
}
